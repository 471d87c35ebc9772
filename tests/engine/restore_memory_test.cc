// What a process that restores holds at most: its tables and 64 MiB.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "testing/engine/saved_tables.h"
#include "testing/sanitized.h"

namespace embertable {
namespace {

using namespace engine_fixture;  // NOLINT: the vocabulary of these tests

constexpr std::int64_t kRows = 400'000;
constexpr std::int32_t kDim = 64;  // with Adagrad's slots 205 MB

/// Resident at most so far, in bytes.
std::int64_t peak_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmHWM:")) return std::stoll(line.substr(6)) * 1024;
  return 0;
}

/// Restores in a process of its own; gives how far its peak rose beyond the mapped tables.
std::int64_t rise_beyond_tables(const std::filesystem::path& run) {
  int ends[2];
  if (::pipe(ends) != 0) throw std::runtime_error("pipe failed");
  const pid_t child = ::fork();
  if (child == 0) {
    const std::int64_t before = peak_bytes();
    StrategyOptions strategy;
    strategy.executor = make_thread_pool(4);
    Embedding engine = engine_with(make_strategy(strategy), one_zero_table(kRows, kDim), adagrad());
    engine.restore(run);
    std::int64_t rise = peak_bytes() - before;
    for (const MemoryReport::Entry& entry : engine.memory().entries)
      if (entry.name == "t") rise -= entry.bytes;
    ::_exit(::write(ends[1], &rise, sizeof rise) == sizeof rise ? 0 : 1);
  }
  std::int64_t rise = 0;
  const bool told = ::read(ends[0], &rise, sizeof rise) == sizeof rise;
  ::waitpid(child, nullptr, 0);
  ::close(ends[0]);
  ::close(ends[1]);
  if (!told) throw std::runtime_error("the process that restores failed");
  return rise;
}

TEST(RestoreMemory, IsTheTablesAndALittle) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer's own memory would be measured";
  const TemporaryDirectory temporary;
  {
    Embedding engine = engine_with(accelerator(), one_zero_table(kRows, kDim), adagrad());
    engine.build(1);
    engine.save(temporary.path());
  }
  const std::int64_t rise = rise_beyond_tables(temporary.path());
  EXPECT_GT(rise, -(std::int64_t{8} << 20));  // the tables were counted
  EXPECT_LT(rise, std::int64_t{64} << 20);
}

}  // namespace
}  // namespace embertable
