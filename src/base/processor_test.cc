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

TEST(Processor, IsOfTheMakerThatTheKernelNames) {
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line) && !line.starts_with("vendor_id")) {
  }
  if (!file) GTEST_SKIP() << "runs where /proc/cpuinfo names the maker of an x86-64 CPU";
  EXPECT_EQ(processor_is_intel(), line.ends_with(": GenuineIntel")) << line;
}

}  // namespace
}  // namespace embertable
