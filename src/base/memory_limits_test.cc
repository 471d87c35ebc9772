#include "base/memory_limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <string>

namespace embertable {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kGiB = std::int64_t{1} << 30;

/// A folder with the files of /proc and /sys that a test writes.
class FakeSystem {
 public:
  FakeSystem()
      : root_(fs::path(testing::TempDir()) /
              testing::UnitTest::GetInstance()->current_test_info()->name()) {
    fs::remove_all(root_);
  }
  ~FakeSystem() { fs::remove_all(root_); }
  FakeSystem(const FakeSystem&) = delete;
  FakeSystem& operator=(const FakeSystem&) = delete;

  void write(const fs::path& path, const std::string& text) const {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text << '\n';
  }
  /// Writes the files of a machine of 8 GiB, of which 6 are available.
  void write_machine() const {
    write("proc/meminfo",
          "MemTotal:        8388608 kB\nMemFree:          100 kB\nMemAvailable:    6291456 kB");
  }
  const fs::path& root() const { return root_; }

 private:
  fs::path root_;
};

TEST(MemoryLimits, AreUnknownWhereTheSystemTellsNothing) {
  const FakeSystem system;
  const MemoryLimits limits = memory_limits(system.root());
  EXPECT_EQ(limits.machine, 0);
  EXPECT_EQ(limits.group_limit, 0);
  EXPECT_EQ(limits.left(), std::numeric_limits<std::int64_t>::max());
}

TEST(MemoryLimits, LeaveAnythingWhereTheSystemDoesNotTellWhatIsAvailable) {
  const FakeSystem system;
  system.write("proc/meminfo", "MemTotal:        8388608 kB");
  EXPECT_EQ(memory_limits(system.root()).left(), std::numeric_limits<std::int64_t>::max());
}

TEST(MemoryLimits, AreTheMachinesWithoutAGroup) {
  const FakeSystem system;
  system.write_machine();
  const MemoryLimits limits = memory_limits(system.root());
  EXPECT_EQ(limits.machine, 8 * kGiB);
  EXPECT_EQ(limits.available, 6 * kGiB);
  EXPECT_EQ(limits.left(), 6 * kGiB);
}

TEST(MemoryLimits, OfNestedGroupsTheOneThatLeavesLeastCounts) {
  const FakeSystem system;
  system.write_machine();
  system.write("proc/self/cgroup", "0::/work/job");
  system.write("sys/fs/cgroup/memory.max", "max");
  system.write("sys/fs/cgroup/work/memory.max", std::to_string(5 * kGiB));
  system.write("sys/fs/cgroup/work/memory.current", std::to_string(4 * kGiB));
  system.write("sys/fs/cgroup/work/job/memory.max", std::to_string(3 * kGiB));
  system.write("sys/fs/cgroup/work/job/memory.current", std::to_string(kGiB));
  const MemoryLimits limits = memory_limits(system.root());
  EXPECT_EQ(limits.group_limit, 5 * kGiB);
  EXPECT_EQ(limits.group_used, 4 * kGiB);
  EXPECT_EQ(limits.left(), kGiB);
}

TEST(MemoryLimits, FilesThatAreCachedAreNotInUse) {
  const FakeSystem system;
  system.write_machine();
  system.write("proc/self/cgroup", "0::/");
  system.write("sys/fs/cgroup/memory.max", std::to_string(4 * kGiB));
  system.write("sys/fs/cgroup/memory.current", std::to_string(4 * kGiB));
  system.write("sys/fs/cgroup/memory.stat", "anon 7\ninactive_file " + std::to_string(3 * kGiB));
  EXPECT_EQ(memory_limits(system.root()).left(), 3 * kGiB);
}

TEST(MemoryLimits, TheMachineMayLeaveLessThanTheGroup) {
  const FakeSystem system;
  system.write_machine();
  system.write("sys/fs/cgroup/memory.max", std::to_string(7 * kGiB));
  system.write("sys/fs/cgroup/memory.current", "0");
  EXPECT_EQ(memory_limits(system.root()).left(), 6 * kGiB);
}

TEST(MemoryLimits, AGroupBeyondItsLimitLeavesNothing) {
  const FakeSystem system;
  system.write_machine();
  system.write("sys/fs/cgroup/memory.max", std::to_string(kGiB));
  system.write("sys/fs/cgroup/memory.current", std::to_string(2 * kGiB));
  EXPECT_EQ(memory_limits(system.root()).left(), 0);
}

TEST(MemoryLimits, GroupsOfTheFirstVersionCount) {
  const FakeSystem system;
  system.write_machine();
  system.write("proc/self/cgroup", "5:cpu,cpuacct:/other\n4:hugetlb,memory:/box\n0::/");
  system.write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712");
  system.write("sys/fs/cgroup/memory/box/memory.limit_in_bytes", std::to_string(2 * kGiB));
  system.write("sys/fs/cgroup/memory/box/memory.usage_in_bytes", std::to_string(kGiB));
  EXPECT_EQ(memory_limits(system.root()).left(), kGiB);
}

TEST(ControlGroups, AreTheOnesThatAreSeenFromTheOutermostInwards) {
  const FakeSystem system;
  const fs::path groups = system.root() / "sys/fs/cgroup";
  system.write("proc/self/cgroup", "0::/a/b/c");
  system.write("sys/fs/cgroup/a/b/cpu.max", "max");
  EXPECT_THAT(control_groups(system.root(), ""),
              testing::ElementsAre(groups / "", groups / "a", groups / "a/b"));
  system.write("proc/self/cgroup", "0::/../elsewhere");
  EXPECT_THAT(control_groups(system.root(), ""), testing::ElementsAre(groups / ""));
}

TEST(MemoryLimits, OfThisMachineAreKnown) {
  const MemoryLimits limits = memory_limits();
  EXPECT_GT(limits.machine, 0);
  EXPECT_GT(limits.left(), 0);
  EXPECT_LE(limits.left(), limits.machine);
}

}  // namespace
}  // namespace embertable
