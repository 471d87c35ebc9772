#include "apps/doctor/findings.h"

#include <gtest/gtest.h>

#include "embertable/errors.h"
#include "testing/temporary_directory.h"

namespace embertable::doctor {
namespace {

constexpr std::int64_t kGiB = std::int64_t{1} << 30;

Machine good_machine() {
  return {.cpu = "Some CPU",
          .levels = {"scalar", "avx2"},
          .level = "avx2",
          .wrong_level = "",
          .cpus = 8,
          .allowed = 8,
          .quota = 0,
          .huge_pages = "madvise",
          .tried_bytes = 8 << 20,
          .tried_in_huge = 8 << 20,
          .memory = 32 * kGiB,
          .available = 24 * kGiB,
          .open_files = 1024};
}

TEST(Doctor, AGoodMachineGetsNoAdvice) {
  const Machine machine = good_machine();
  EXPECT_EQ(judge_levels(machine).found, "avx2 of scalar, avx2, Some CPU");
  EXPECT_EQ(judge_threads(machine).found, "8 CPUs");
  EXPECT_EQ(judge_huge_pages(machine).found, "madvise; 8 of 8 MiB got them");
  EXPECT_EQ(judge_memory(machine).found, "24.0 GiB of 32.0 GiB are available");
  EXPECT_EQ(judge_limits(machine).found, "1024 open files");
  for (const auto judge :
       {judge_levels, judge_threads, judge_huge_pages, judge_memory, judge_limits})
    EXPECT_EQ(judge(machine).advice, "");
}

TEST(Doctor, ACpuWithoutAvx2IsTold) {
  Machine machine = good_machine();
  machine.levels = {"scalar"};
  machine.level = "scalar";
  EXPECT_NE(judge_levels(machine).advice.find("where the CPU has AVX2"), std::string::npos);
}

TEST(Doctor, AForcedLevelIsTold) {
  Machine machine = good_machine();
  machine.level = "scalar";
  EXPECT_NE(judge_levels(machine).advice.find("unset EMBERTABLE_SIMD to use avx2"),
            std::string::npos);
  machine.level = "";
  machine.wrong_level = "EMBERTABLE_SIMD: must be a level, got 'sse'";
  EXPECT_TRUE(judge_levels(machine).advice.starts_with(machine.wrong_level));
}

TEST(Doctor, TheFewestCpusAreTheAdvice) {
  Machine machine = good_machine();
  machine.allowed = 6;
  EXPECT_TRUE(judge_threads(machine).advice.starts_with("pass --threads 6,"));
  machine.quota = 2.5;
  EXPECT_TRUE(judge_threads(machine).advice.starts_with("pass --threads 3,"));
  machine.quota = 100;
  EXPECT_TRUE(judge_threads(machine).advice.starts_with("pass --threads 6,"));
}

TEST(Doctor, HugePagesThatAreOffOrUsedUpAreTold) {
  Machine machine = good_machine();
  machine.tried_in_huge = 2 << 20;
  EXPECT_NE(judge_huge_pages(machine).advice.find("compact_memory"), std::string::npos);
  machine.huge_pages = "never";
  EXPECT_NE(judge_huge_pages(machine).advice.find("echo madvise"), std::string::npos);
  machine.huge_pages = "";
  EXPECT_TRUE(judge_huge_pages(machine).found.starts_with("not offered"));
  EXPECT_FALSE(judge_huge_pages(machine).good());
}

TEST(Doctor, TheLimitOfAContainerCounts) {
  Machine machine = good_machine();
  machine.group_limit = 4 * kGiB;
  machine.group_used = kGiB;
  EXPECT_EQ(judge_memory(machine).found,
            "24.0 GiB of 32.0 GiB are available; this control group may use 4.0 GiB, and has 3.0 "
            "GiB left");
  EXPECT_TRUE(judge_memory(machine).good());
  machine.group_used = 4 * kGiB;
  EXPECT_FALSE(judge_memory(machine).good());
}

TEST(Doctor, EveryLimitHasItsAdvice) {
  Machine machine = good_machine();
  machine.address_space = kGiB;
  machine.file_bytes = 2 * kGiB;
  machine.open_files = 64;
  machine.strict_commit = true;
  const Finding finding = judge_limits(machine);
  EXPECT_EQ(finding.found,
            "address space 1.0 GiB, files of at most 2.0 GiB, 64 open files, mapped memory counts "
            "as used");
  for (const char* word : {"ulimit -v", "ulimit -f", "ulimit -n 256", "vm.overcommit_memory=0"})
    EXPECT_NE(finding.advice.find(word), std::string::npos) << word;
}

TEST(Doctor, AFolderIsTriedAndLeftAsItWas) {
  const TemporaryDirectory temporary;
  const Folder folder = look_at_folder(temporary.path());
  EXPECT_EQ(folder.unusable, "");
  ASSERT_EQ(folder.tried.size(), 8U);
  for (const Tried& tried : folder.tried) EXPECT_EQ(tried.error, "") << tried.what;
  EXPECT_TRUE(std::filesystem::is_empty(temporary.path()));
  EXPECT_GT(folder.free_bytes, 0);
}

TEST(Doctor, AFolderThatIsMissingIsUnusable) {
  const TemporaryDirectory temporary;
  const Finding finding = judge_folder(look_at_folder(temporary.path() / "none"));
  EXPECT_NE(finding.advice.find((temporary.path() / "none").string()), std::string::npos);
}

TEST(Doctor, WhatAFileSystemCannotDoIsNamed) {
  const Folder folder{.path = "/runs",
                      .type = "nfs",
                      .free_bytes = kGiB,
                      .unusable = "",
                      .tried = {{"write", ""}, {"lock", "no locks here"}}};
  const Finding finding = judge_folder(folder);
  EXPECT_EQ(finding.found, "/runs: nfs, 1.0 GiB free; can write");
  EXPECT_NE(finding.advice.find("cannot lock (no locks here)"), std::string::npos);
}

TEST(Doctor, RunsInMemoryAreTold) {
  EXPECT_FALSE(judge_folder({.path = "/x", .type = "tmpfs", .unusable = "", .tried = {}}).good());
  EXPECT_TRUE(judge_folder({.path = "/x", .type = "ext4", .unusable = "", .tried = {}}).good());
}

TEST(Doctor, ReadsTheTextsOfTheSystem) {
  EXPECT_EQ(chosen_word("always [madvise] never"), "madvise");
  EXPECT_EQ(chosen_word("none"), "");
  EXPECT_EQ(quota_of("250000 100000"), 2.5);
  EXPECT_EQ(quota_of("max 100000"), 0);
  EXPECT_EQ(quota_of("-1 100000"), 0);
}

TEST(Doctor, ThisMachineIsSeen) {
  const Machine machine = look_at_machine();
  EXPECT_GT(machine.cpus, 0);
  EXPECT_GT(machine.memory, machine.available);
  EXPECT_GT(machine.available, 0);
  EXPECT_EQ(machine.levels.front(), "scalar");
}

}  // namespace
}  // namespace embertable::doctor
