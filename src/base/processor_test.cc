#include "base/processor.h"

#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>
#include <string>

namespace embertable {
namespace {

/// Returns what the kernel says of the first CPU.
std::set<std::string> flags() {
  std::ifstream file("/proc/cpuinfo");
  std::set<std::string> found;
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("flags")) continue;
    std::istringstream words(line);
    for (std::string word; words >> word;) found.insert(word);
    break;
  }
  return found;
}

TEST(Processor, HasWhatTheKernelSays) {
  const std::set<std::string> known = flags();
  if (known.empty()) GTEST_SKIP() << "runs where /proc/cpuinfo has the flags of an x86-64 CPU";
  const auto all = [&](std::initializer_list<const char*> names) {
    for (const char* name : names)
      if (!known.contains(name)) return false;
    return true;
  };
  const bool avx2 = all({"avx2", "bmi1", "bmi2", "popcnt"});
  EXPECT_EQ(processor_has(Instructions::kSse42), all({"sse4_2"}));
  EXPECT_EQ(processor_has(Instructions::kAvx2), avx2);
  EXPECT_EQ(processor_has(Instructions::kAvx512f), all({"avx512f"}));
  EXPECT_EQ(processor_has(Instructions::kAvx512),
            avx2 && all({"avx512f", "avx512bw", "avx512dq", "avx512vl"}));
}

TEST(Processor, IsOfTheMakerAndFamilyThatTheKernelNames) {
  std::ifstream file("/proc/cpuinfo");
  std::string vendor, family;
  for (std::string line; family.empty() && std::getline(file, line);) {
    if (line.starts_with("vendor_id")) vendor = line.substr(line.find(": ") + 2);
    if (line.starts_with("cpu family")) family = line.substr(line.find(": ") + 2);
  }
  if (family.empty()) GTEST_SKIP() << "runs where /proc/cpuinfo names the family of an x86-64 CPU";
  const bool is_zen4 = vendor == "AuthenticAMD" && family == "25" && flags().contains("avx512f");
  const ProcessorKind kind = vendor == "GenuineIntel" ? ProcessorKind::kIntel
                             : is_zen4                ? ProcessorKind::kZen4
                                                      : ProcessorKind::kOther;
  EXPECT_EQ(processor_kind(), kind) << vendor << ", family " << family;
}

}  // namespace
}  // namespace embertable
