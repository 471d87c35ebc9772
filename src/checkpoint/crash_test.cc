// A save that fails, is killed or loses power at any operation: then the run directory gives the
// old state or the new.
#include <gtest/gtest.h>

#include "checkpoint/run_directory.h"
#include "embertable/errors.h"
#include "testing/each_operation.h"
#include "testing/memory_files.h"
#include "testing/refusal.h"
#include "testing/saved_tables.h"

namespace embertable::checkpoint {
namespace {

using Fault = MemoryFiles::Fault;
using Loss = MemoryFiles::Loss;

/// Small: each operation of a save is made to fail in several ways.
Manifest small_manifest(std::int64_t step) {
  Manifest manifest = test_manifest(2, Sharding::kDiv, step);
  manifest.tables.pop_back();
  manifest.features.clear();
  return manifest;
}

void save_step(FileSystem& files, std::int64_t step, float salt) {
  const Manifest manifest = small_manifest(step);
  save(files, "/runs/a", manifest, test_shards(manifest, salt),
       {.blobs = {{"salt", std::to_string(salt)}}});
}

/// What a restore gives, tables and caller's state, every byte checked; "none" if there is no
/// checkpoint.
std::string restored(FileSystem& files) {
  if (list_steps(files, "/runs/a").empty()) return "none";
  const Reader reader(files, "/runs/a");
  reader.verify();
  return digest(reader) + reader.caller_state().blobs.at("salt");
}

std::string state_of(float salt) {
  return digest(test_digest_tables(small_manifest(0), salt)) + std::to_string(salt);
}

bool has_leftovers(FileSystem& files) {
  for (const std::string& name : files.list("/runs/a"))
    if (is_temporary_name(name)) return true;
  return false;
}

TEST(Crash, OfAFirstSaveLeavesNothingOrAll) {
  const std::string first = state_of(1);
  at_each_operation(
      MemoryFiles(), [](FileSystem& files) { save_step(files, 1, 1); },
      [&](MemoryFiles& files, bool succeeded) {
        const std::string found = restored(files);
        EXPECT_TRUE(found == first || (!succeeded && found == "none"));
      });
}

TEST(Crash, OfALaterSaveLeavesTheOldStepOrTheNew) {
  MemoryFiles before;
  save_step(before, 1, 1);
  const std::string first = state_of(1), second = state_of(2);
  at_each_operation(
      before, [](FileSystem& files) { save_step(files, 2, 2); },
      [&](MemoryFiles& files, bool succeeded) {
        const std::string found = restored(files);
        EXPECT_TRUE(found == second || (!succeeded && found == first));
        EXPECT_EQ(list_steps(files, "/runs/a").front(), 1);
      });
}

TEST(Crash, OfARemovalLeavesTheStepWholeOrGone) {
  MemoryFiles before;
  save_step(before, 1, 1);
  save_step(before, 2, 2);
  const std::string first = state_of(1), second = state_of(2);
  at_each_operation(
      before, [](FileSystem& files) { remove_step(*files.open_directory("/runs/a"), 2); },
      [&](MemoryFiles& files, bool succeeded) {
        const std::string found = restored(files);
        EXPECT_TRUE(found == first || (!succeeded && found == second));
      });
}

TEST(Crash, OfASaveThatKeepsTheNewestLeavesAStep) {
  MemoryFiles before;
  save_step(before, 1, 1);
  save_step(before, 2, 2);
  const std::string second = state_of(2), third = state_of(3);
  at_each_operation(
      before,
      [](FileSystem& files) {
        const OpenRun run(files, "/runs/a");
        const Manifest manifest = small_manifest(3);
        save(run, manifest, test_shards(manifest, 3), {.blobs = {{"salt", std::to_string(3.0f)}}});
        keep_newest(run, 1);
      },
      [&](MemoryFiles& files, bool succeeded) {
        const std::string found = restored(files);
        EXPECT_TRUE(found == third || (!succeeded && found == second));
        const std::vector<std::int64_t> steps = list_steps(files, "/runs/a");
        EXPECT_TRUE(!succeeded || steps == std::vector<std::int64_t>{3});
        EXPECT_TRUE(found != second || steps == (std::vector<std::int64_t>{1, 2}));
      });
}

TEST(Crash, AfterAnUnflushedNameKeepRemovesNothingEarly) {
  // The newest step's name was not flushed: a keep whose own flush fails must not rely on it.
  MemoryFiles files;
  save_step(files, 1, 1);
  save_step(files, 2, 2);
  const OpenRun run(files, "/runs/a");
  files.fail_at(0, Fault::kError);
  EXPECT_THROW(keep_newest(run, 1), IoError);
  EXPECT_EQ(list_steps(files, "/runs/a"), (std::vector<std::int64_t>{1, 2}));
}

TEST(Crash, IsFollowedByASaveThatCleansUpAndLasts) {
  MemoryFiles empty, before;
  save_step(before, 1, 1);
  const std::string third = state_of(3);
  for (const MemoryFiles* start : {&empty, &before}) {
    at_each_operation(
        *start, [](FileSystem& files) { save_step(files, 2, 2); },
        [&](MemoryFiles& files, bool) {
          save_step(files, 3, 3);
          EXPECT_FALSE(has_leftovers(files));
          files.lose_power(Loss::kUnsynced);
          EXPECT_EQ(restored(files), third);
        });
  }
}

/// A run whose names are links to what must stay: an archived step, a leftover, files.
class CrashAmongLinks : public testing::Test {
 protected:
  CrashAmongLinks() {
    save(before, "/archive", small_manifest(1), test_shards(small_manifest(1), 1),
         {.blobs = {{"salt", std::to_string(1.0f)}}});
    before.make_directory("/precious");
    const std::string text = "kept";
    before.create("/precious/manifest.json")->write(bytes_of(text));
    make_directories(before, "/runs/a/.step_000000000001_tmp-y");
    before.make_link("/runs/a/" + step_name(1), "/archive/" + step_name(1));
    before.make_link("/runs/a/.step_000000000001_tmp-x", "/precious");
    before.make_link("/runs/a/.step_000000000001_tmp-y/link", "/precious");
    before.make_link("/runs/a/.step_000000000002_tmp-z", "/nowhere");
    for (const auto& [path, text_of_file] : before.contents()) before.open(path)->sync();
    for (const char* path : {"/", "/archive", "/precious", "/runs", "/runs/a"})
      before.sync_directory(path);
    before.sync_directory("/archive/" + step_name(1));
    before.sync_directory("/runs/a/.step_000000000001_tmp-y");
    kept = outside(before);
  }

  /// Everything that is not in the run.
  static std::map<std::string, std::string> outside(MemoryFiles& files) {
    std::map<std::string, std::string> found;
    for (const auto& [path, bytes] : files.contents())
      if (!path.starts_with("/runs/")) found[path] = *bytes;
    return found;
  }

  MemoryFiles before;
  std::map<std::string, std::string> kept;
};

TEST_F(CrashAmongLinks, LeavesWhatTheyLeadTo) {
  const std::string first = state_of(1), second = state_of(2);
  at_each_operation(
      before,
      [&](FileSystem& files) {
        save_step(files, 2, 2);
        keep_newest(OpenRun(files, "/runs/a"), 1);
      },
      [&](MemoryFiles& files, bool succeeded) {
        EXPECT_EQ(outside(files), kept);
        const std::string found = restored(files);
        EXPECT_TRUE(found == second || (!succeeded && found == first));
      });
}

// Somebody puts a link in place of the unfinished step before one of the save's operations.
TEST_F(CrashAmongLinks, ThatAppearMeanwhileLeavesWhatTheyLeadTo) {
  bool complete = false;
  for (std::int64_t at = 0; !complete; ++at) {
    SCOPED_TRACE("operation " + std::to_string(at));
    const auto files = before.copy();
    std::int64_t number = 0;
    files->meanwhile = [&](const std::string&, const std::filesystem::path&) {
      if (number++ != at) return;
      for (const std::string& name : files->list("/runs/a")) {
        if (!is_temporary_name(name) || !files->open_directory("/runs/a")->open(name)) continue;
        files->rename("/runs/a/" + name, "/runs/moved");
        files->make_link("/runs/a/" + name, "/precious");
        return;
      }
    };
    try {
      save_step(*files, 3, 3);
    } catch (const IoError&) {  // what it wrote is away
    }
    complete = number <= at;
    EXPECT_EQ(outside(*files), kept);
  }
}

// Directories above the run may belong to somebody else; that they cannot be opened does no harm.
TEST(Save, ReportsEveryErrorButThatOfOpeningWhatIsAboveTheRun) {
  std::int64_t excused = 0;
  bool complete = false;
  for (std::int64_t at = 0; !complete; ++at) {
    MemoryFiles files;
    make_directories(files, "/runs");
    files.fail_at(at, Fault::kError);
    std::string failing;
    files.meanwhile = [&](const std::string& operation, const std::filesystem::path& path) {
      if (files.operations() == at) failing = operation + " " + path.string();
    };
    try {
      save_step(files, 1, 1);
      complete = files.operations() <= at;
      if (!complete) {
        ++excused;
        EXPECT_TRUE(failing == "open directory /runs" || failing == "open directory /") << failing;
      }
    } catch (const IoError&) {
    }
  }
  EXPECT_EQ(excused, 2);
}

TEST(Save, ThatNoReaderWouldAcceptIsRefused) {
  MemoryFiles files;
  const Manifest manifest = test_manifest();
  const auto refusal_of = [&](const CallerState& caller) {
    return refusal<ValueError>(
        [&] { save(files, "/run", manifest, test_shards(manifest), caller); });
  };
  const std::string long_text(kMaxManifestBytes, 'a');
  EXPECT_EQ(
      refusal_of({.json = "\"" + long_text + "\""}),
      "cannot save: the manifest, which has the caller's JSON, would have 268435458 bytes, at "
      "most 268435456 are read");
  const std::string long_name(kMaxSafetensorsHeader, 'n');
  EXPECT_NE(refusal_of({.blobs = {{long_name, ""}}}).find("at most 100000000 are read"),
            std::string::npos);
  EXPECT_EQ(files.list("/run"), std::vector<std::string>{kLockName});
}

TEST(Save, RefusesAStepThatIsThere) {
  MemoryFiles files;
  const Manifest manifest = test_manifest();
  save(files, "/run", manifest, test_shards(manifest));
  try {
    save(files, "/run", manifest, test_shards(manifest));
    FAIL();
  } catch (const StateError& error) {
    EXPECT_STREQ(error.what(),
                 "/run: step 7 is already saved there; restore it and go on from it, or save to "
                 "another directory");
  }
}

TEST(Save, AFillThatThrowsLeavesNothing) {
  MemoryFiles files;
  const Manifest manifest = test_manifest();
  const auto failing = [&](std::int64_t table, std::int32_t host) {
    RowSource source = test_shards(manifest)(table, host);
    if (table == 1) source.fill[0] = [](std::int64_t, std::span<float>) { throw 5; };
    return source;
  };
  EXPECT_THROW(save(files, "/run", manifest, failing), int);
  EXPECT_EQ(files.list("/run"), std::vector<std::string>{kLockName});
}

TEST(Save, AShardThatWasNotAddedIsNoticed) {
  MemoryFiles files;
  const Manifest manifest = test_manifest(2);
  const OpenRun run(files, "/run");
  Writer writer(run, manifest);
  const ShardSource source = test_shards(manifest);
  for (const auto& [table, host] : {std::pair{0, 0}, {1, 0}, {1, 1}})
    writer.add(write_table_file(
        writer.opened(), manifest, table, host,
        rows_of_host(manifest.topology, manifest.tables[table].vocabulary_size, host),
        source(table, host)));
  EXPECT_THROW(writer.commit(), DataLoss);
}

TEST(Save, SaysThatTheStepIsThereWhereItsRunCannotBeFlushed) {
  MemoryFiles files;
  bool renamed = false;
  files.meanwhile = [&](const std::string& operation, const std::filesystem::path&) {
    renamed = renamed || operation == "rename";
    if (renamed && operation == "sync") files.fail_at(0, Fault::kError);
  };
  const std::string text = refusal<IoError>([&] { save_step(files, 1, 1); });
  EXPECT_TRUE(text.starts_with("/runs/a/" + step_name(1) +
                               ": is saved, but a power loss may undo that: /runs/a: cannot"))
      << text;
  files.meanwhile = {};
  files.heal();
  EXPECT_EQ(restored(files), state_of(1));
}

TEST(Save, RecordsTravelAsText) {
  MemoryFiles files;
  const Manifest manifest = test_manifest(2, Sharding::kMod);
  const OpenRun run(files, "/run");
  Writer writer(run, manifest);
  const FileRecord record =
      write_table_file(writer.opened(), manifest, 0, 1, {1, 2, 6}, test_shards(manifest)(0, 1));
  EXPECT_EQ(parse_file_record(to_json(record)), record);
}

}  // namespace
}  // namespace embertable::checkpoint
