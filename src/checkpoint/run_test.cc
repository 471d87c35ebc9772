// Who may save to a run directory, and which steps stay there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <functional>
#include <set>
#include <thread>
#include <utility>

#include "base/hash.h"
#include "checkpoint/reader.h"
#include "embertable/checkpoint.h"
#include "embertable/errors.h"
#include "testing/memory_files.h"
#include "testing/refusal.h"
#include "testing/saved_tables.h"
#include "testing/temporary_directory.h"

namespace embertable::checkpoint {
namespace {

/// Both kinds of files keep the same promise.
void expect_exclusive(FileSystem& files, const std::filesystem::path& run) {
  const std::string held =
      run.string() + ": cannot save there: this process holds its lock already";
  auto first = std::make_unique<OpenRun>(files, run);
  EXPECT_EQ(refusal<StateError>([&] { OpenRun(files, run); }), held);
  // Being refused takes nothing.
  EXPECT_EQ(refusal<StateError>([&] { OpenRun(files, run); }), held);
  const OpenRun other(files, run.string() + "-other");
  first.reset();
  EXPECT_NO_THROW(OpenRun(files, run));
}

TEST(RunLock, IsOneForAProcess) {
  MemoryFiles memory;
  expect_exclusive(memory, "/run");
  const TemporaryDirectory temporary;
  expect_exclusive(local_files(), temporary.path() / "run");
}

/// A process that opens the run, says so and sleeps.
struct Holder {
  explicit Holder(const std::filesystem::path& run) {
    int ends[2];
    if (::pipe(ends) != 0) throw std::runtime_error("pipe failed");
    process = ::fork();
    if (process == 0) {
      const CheckpointRun held(run);
      if (::write(ends[1], "!", 1) != 1) ::_exit(1);
      for (;;) ::pause();
    }
    char byte = 0;
    if (::read(ends[0], &byte, 1) != 1) throw std::runtime_error("the child did not open the run");
    ::close(ends[0]);
    ::close(ends[1]);
  }
  ~Holder() { end(); }
  void end() {
    if (process <= 0) return;
    ::kill(process, SIGKILL);
    ::waitpid(std::exchange(process, 0), nullptr, 0);
  }
  pid_t process = 0;
};

TEST(RunLock, NamesTheOtherProcessAndEndsWithIt) {
  const TemporaryDirectory temporary;
  const std::string run = temporary.path() / "run";
  Holder holder(run);
  EXPECT_EQ(
      refusal<StateError>([&] { CheckpointRun{run}; }),
      run + ": cannot save there: process " + std::to_string(holder.process) + " holds its lock");
  holder.end();
  EXPECT_NO_THROW(CheckpointRun{run});
}

TEST(RunLock, AForkDoesNotLetGoOfItsParentsLock) {
  const TemporaryDirectory temporary;
  const std::filesystem::path run = temporary.path() / "run";
  auto held = std::make_unique<OpenRun>(local_files(), run);
  const pid_t child = ::fork();
  if (child == 0) {
    held.reset();
    ::_exit(0);
  }
  ::waitpid(child, nullptr, 0);
  EXPECT_THROW(OpenRun(local_files(), run), StateError);
  held.reset();
  EXPECT_NO_THROW(OpenRun(local_files(), run));
}

TEST(RunLock, MovesWithTheRun) {
  const TemporaryDirectory temporary;
  CheckpointRun first(temporary.path() / "a");
  CheckpointRun second = std::move(first);
  EXPECT_THROW(CheckpointRun(temporary.path() / "a"), StateError);
  EXPECT_EQ(second.directory(), temporary.path() / "a");
  second = CheckpointRun(temporary.path() / "b");
  EXPECT_NO_THROW(CheckpointRun(temporary.path() / "a"));
}

TEST(RunLock, FileIsNoStepAndNoLeftover) {
  MemoryFiles files;
  const Manifest manifest = test_manifest();
  save(files, "/run", manifest, test_shards(manifest));
  EXPECT_EQ(files.list("/run"), (std::vector<std::string>{".lock", "step_000000000007"}));
  EXPECT_EQ(list_steps(files, "/run"), std::vector<std::int64_t>{7});
}

/// Steps 1 to 5, each with a blob that tells it.
class Keep : public testing::Test {
 protected:
  Keep() {
    for (std::int64_t step = 1; step <= 5; ++step) {
      const Manifest manifest = test_manifest(1, Sharding::kDiv, step);
      save(files, "/run", manifest, test_shards(manifest));
    }
  }

  std::vector<std::int64_t> after_keeping(std::int64_t newest) {
    keep_newest(OpenRun(files, "/run"), newest);
    return list_steps(files, "/run");
  }

  void damage(std::int64_t step) {
    files.contents().at("/run/" + step_name(step) + "/" + kManifestName)->back() = '?';
  }

  MemoryFiles files;
};

using Steps = std::vector<std::int64_t>;

TEST_F(Keep, LeavesTheNewest) {
  EXPECT_EQ(after_keeping(6), (Steps{1, 2, 3, 4, 5}));
  EXPECT_EQ(after_keeping(5), (Steps{1, 2, 3, 4, 5}));
  EXPECT_EQ(after_keeping(2), (Steps{4, 5}));
  EXPECT_EQ(after_keeping(1), (Steps{5}));
  EXPECT_EQ(files.list("/run"), (std::vector<std::string>{".lock", step_name(5)}));
}

TEST_F(Keep, CountsOnlyStepsThatCanBeOpened) {
  damage(5);
  damage(3);
  EXPECT_EQ(after_keeping(2), (Steps{2, 3, 4, 5}));
  EXPECT_EQ(after_keeping(1), (Steps{4, 5}));
  EXPECT_EQ(Reader(files, "/run").manifest().step, 4);
}

TEST_F(Keep, WithoutAStepThatCanBeOpenedRemovesNothing) {
  for (std::int64_t step = 1; step <= 5; ++step) damage(step);
  EXPECT_EQ(after_keeping(1), (Steps{1, 2, 3, 4, 5}));
}

TEST_F(Keep, ANewerFormatStopsIt) {
  files.contents().at("/run/" + step_name(5) + "/" + kManifestName)->back() = '?';
  std::string& text = *files.contents().at("/run/" + step_name(4) + "/" + kManifestName);
  text.replace(text.find("\"version\": 1"), 12, "\"version\": 2");
  const std::size_t body = text.rfind("\"checksum\": \"");
  text.replace(body + 13, 32, hash_hex(bytes_of(text.substr(0, body))));
  EXPECT_THROW(after_keeping(1), IoError);
  EXPECT_EQ(list_steps(files, "/run"), (Steps{1, 2, 3, 4, 5}));
}

/// Three steps in a run, of which the first was moved to an archive and is a link to there.
class ArchivedStep : public testing::Test {
 protected:
  ArchivedStep() {
    for (std::int64_t step = 1; step <= 3; ++step) save_step(step);
    std::filesystem::rename(run / step_name(1), archive);
    std::filesystem::create_directory_symlink(archive, run / step_name(1));
  }
  ~ArchivedStep() override { EXPECT_NO_THROW(verify_checkpoint(archive)); }

  void save_step(std::int64_t step) {
    const Manifest manifest = test_manifest(1, Sharding::kDiv, step);
    save(local_files(), run, manifest, test_shards(manifest), test_caller());
  }

  std::vector<std::string> names() { return local_files().list(run); }

  const TemporaryDirectory temporary;
  const std::filesystem::path run = temporary.path() / "run", archive = temporary.path() / "old";
};

TEST_F(ArchivedStep, IsUnlinkedByKeep) {
  CheckpointRun handle(run);
  EXPECT_EQ(handle.steps(), (Steps{1, 2, 3}));
  handle.keep(2);
  EXPECT_EQ(names(), (std::vector<std::string>{".lock", step_name(2), step_name(3)}));
}

// The disk of the archive may be away.
TEST_F(ArchivedStep, CountsAsSavedWhereverItsLinkLeads) {
  EXPECT_THROW(save_step(1), StateError);
  std::filesystem::rename(archive, temporary.path() / "away");
  EXPECT_THROW(save_step(1), StateError);
  std::filesystem::rename(temporary.path() / "away", archive);
}

TEST_F(ArchivedStep, IsPassedOverWhereItsLinkLeadsNowhere) {
  std::filesystem::create_symlink(temporary.path() / "away", run / step_name(7));
  EXPECT_EQ(find_checkpoint(run), run / step_name(3));
  std::filesystem::remove(run / step_name(7));
  std::ofstream(run / step_name(8)) << "no step";
  const Reader reader(local_files(), run);
  EXPECT_EQ(reader.directory(), run / step_name(3));
  ASSERT_EQ(reader.skipped().size(), 1);
  EXPECT_THAT(reader.skipped().front(), testing::HasSubstr("it is no directory"));
}

TEST_F(ArchivedStep, IsNoLeftoverUnderAnotherName) {
  std::filesystem::create_directory_symlink(archive, run / ".step_000000000009_tmp-x");
  std::filesystem::create_symlink("nowhere",
                                  run / temporary_name(*local_files().open_directory(run), 4));
  make_directories(local_files(), run / ".step_000000000009_tmp-y" / "a");
  std::filesystem::create_directory_symlink(archive, run / ".step_000000000009_tmp-y" / "a" / "b");
  save_step(4);
  EXPECT_EQ(names(), (std::vector<std::string>{".lock", step_name(1), step_name(2), step_name(3),
                                               step_name(4)}));
}

/// A run of two steps, of which somebody keeps one while another opens it.
class PrunedMeanwhile : public testing::Test {
 protected:
  PrunedMeanwhile() {
    save_step(before, 1);
    save_step(before, 2);
  }

  static void save_step(FileSystem& files, std::int64_t step) {
    const Manifest manifest = test_manifest(2, Sharding::kMod, step);
    save(files, "/run", manifest, test_shards(manifest), test_caller(), {{"ads", "bytes"}});
  }

  /// Calls `read` on files where step 3 is saved and all others are removed before one operation,
  /// which is each in turn.
  void at_each_operation(const std::function<void(FileSystem& files)>& read) {
    bool complete = false;
    for (std::int64_t at = 0; !complete; ++at) {
      SCOPED_TRACE("operation " + std::to_string(at));
      const auto files = before.copy();
      std::int64_t number = 0;
      files->meanwhile = [&](const std::string&, const std::filesystem::path&) {
        if (number++ != at) return;
        save_step(*files, 3);
        keep_newest(OpenRun(*files, "/run"), 1);
      };
      read(*files);
      complete = number <= at;
    }
  }

  MemoryFiles before;
};

TEST_F(PrunedMeanwhile, AReaderOfTheRunHasAWholeStep) {
  std::set<std::int64_t> seen;
  at_each_operation([&](FileSystem& files) {
    const Reader reader(files, "/run");
    EXPECT_NO_THROW(reader.verify());
    EXPECT_EQ(reader.caller_state(), test_caller());
    seen.insert(reader.manifest().step);
  });
  EXPECT_EQ(seen, (std::set<std::int64_t>{2, 3}));
}

TEST_F(PrunedMeanwhile, AReaderOfAStepHasItOrSaysThatItWasRemoved) {
  std::set<std::string> refusals;
  at_each_operation([&](FileSystem& files) {
    const std::string step = "/run/" + step_name(2);
    refusals.insert(refusal<IoError>([&] { Reader(files, step).verify(); }));
  });
  const std::string step = "/run/" + step_name(2);
  EXPECT_EQ(refusals, (std::set<std::string>{"", step + ": cannot open: there is no checkpoint",
                                             step + ": cannot open: the step was removed"}));
}

// On a disk, with a writer that goes as fast as it can.
TEST(PrunedBesides, AReaderOfTheRunHasAWholeStepEveryTime) {
  const TemporaryDirectory temporary;
  const std::filesystem::path run = temporary.path() / "run";
  const auto save_step = [&](const OpenRun& open, std::int64_t step) {
    const Manifest manifest = test_manifest(2, Sharding::kMod, step);
    save(open, manifest, test_shards(manifest), test_caller());
    keep_newest(open, 1);
  };
  const OpenRun open(local_files(), run);
  save_step(open, 1);
  std::atomic<bool> done = false;
  std::thread writer([&] {
    for (std::int64_t step = 2; !done; ++step) save_step(open, step);
  });
  std::int64_t last = 0;
  for (int i = 0; i < 200; ++i) {
    const std::string error = refusal<std::exception>([&] {
      const Reader reader(local_files(), run);
      reader.verify();
      EXPECT_EQ(reader.caller_state(), test_caller());
      EXPECT_GE(reader.manifest().step, last);
      last = reader.manifest().step;
    });
    EXPECT_EQ(error, "");
  }
  done = true;
  writer.join();
  EXPECT_GT(last, 1);
}

// What is not kept open is opened by its name.
TEST_F(PrunedMeanwhile, AFileThatIsOpenedLaterSaysThatTheStepWasRemoved) {
  Reader reader(before, "/run");
  reader.close_tables();
  save_step(before, 3);
  keep_newest(OpenRun(before, "/run"), 1);
  EXPECT_EQ(refusal<IoError>([&] { reader.verify(); }),
            "/run/step_000000000002/t00000-video-00000-of-00002.safetensors: cannot open: the step "
            "was removed");
  EXPECT_EQ(reader.caller_state(), test_caller());
}

TEST(RunLock, OfAFileThatIsALinkIsRefused) {
  const TemporaryDirectory temporary;
  const std::filesystem::path victim = temporary.path() / "victim", run = temporary.path() / "run";
  std::ofstream(victim) << "kept";
  std::filesystem::create_directory(run);
  std::filesystem::create_symlink("../victim", run / kLockName);
  EXPECT_THROW(OpenRun(local_files(), run), IoError);
  EXPECT_EQ(read_file(local_files(), victim, 100), "kept");
}

// A handler of a signal may call this in the middle of a save.
TEST(CheckpointRunKeep, IsRefusedWithinASaveOfTheSameThread) {
  const TemporaryDirectory directory;
  const OpenRun run(local_files(), directory.path());
  const std::lock_guard saving(run.changing());
  EXPECT_EQ(refusal<StateError>([&] { keep_newest(run, 1); }),
            "a run cannot be changed by a function that a save to it calls");
}

TEST(CheckpointRunKeep, RefusesToKeepNothing) {
  const TemporaryDirectory temporary;
  CheckpointRun run(temporary.path());
  EXPECT_EQ(run.steps(), Steps{});
  EXPECT_NO_THROW(run.keep(1));
  EXPECT_THROW(run.keep(0), ValueError);
}

}  // namespace
}  // namespace embertable::checkpoint
