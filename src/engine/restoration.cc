#include "engine/restoration.h"

#include <set>
#include <string>
#include <utility>

#include "checkpoint/id_maps.h"
#include "checkpoint/writer.h"
#include "embertable/errors.h"
#include "embertable/version.h"
#include "engine/save.h"

namespace embertable::engine {
namespace {

/// Marks the engine as failed and returns the message of the error to throw.
std::string fail_restore(Progress& progress, const char* why) {
  const std::string message = std::string(why) + "; its tables are half read; restore again";
  progress.fail("in a restore: " + message);
  return "restore: the engine failed: " + message;
}

}  // namespace

Restoration::Restoration(const Setup& setup, checkpoint::FileSystem& files,
                         const std::filesystem::path& path, const RestoreOptions& options)
    : setup_(setup),
      reader_(files, path),
      matching_(checkpoint::match("the engine", manifest_of(setup, 0).tables,
                                  reader_.manifest().tables, options, reader_.directory())) {}

RestoreReport Restoration::report() const {
  return {.step = step(),
          .directory = reader_.directory(),
          .caller = reader_.caller_state(),
          .id_maps = checkpoint::read_id_maps(reader_),
          .missing = matching_.missing,
          .extra = matching_.extra,
          .mismatched = matching_.mismatched,
          .skipped = reader_.skipped()};
}

void Restoration::require_full_restore(const std::string& failure) const {
  std::int64_t variables = 0;
  for (const ResolvedTable& table : setup_.assembly.tables)
    variables += 1 + std::ssize(table.slots());
  if (matching_.missing.empty() && matching_.mismatched.empty() &&
      std::ssize(matching_.read) == variables)
    return;
  throw StateError("restore: the engine failed " + failure +
                   ". Every variable must be restored, got a restore that leaves some out");
}

std::vector<checkpoint::RowTarget> Restoration::targets(const Tables& tables) const {
  const checkpoint::Topology topology = {.hosts = setup_.hosts, .sharding = setup_.sharding()};
  std::vector<checkpoint::RowTarget> targets;
  for (const checkpoint::MatchedVariable& variable : matching_.read) {
    const StoredTable& table = tables.tables()[variable.table];
    for (std::int32_t host = 0; host < setup_.hosts; ++host) {
      const Shard& shard = table.shards[host];
      if (shard.rows() == 0) continue;
      targets.push_back({variable.saved_table, variable.saved_slot,
                         checkpoint::rows_of_host(topology, table.vocabulary_size, host),
                         shard.at(variable.slot, 0), shard.stride(variable.slot)});
    }
  }
  return targets;
}

void Restoration::read_into(const Tables& tables, Progress& progress,
                            FunctionRef<void()> before_rows_change) const {
  checkpoint::RowLoad load(reader_, targets(tables));
  load.check(*setup_.executor);
  before_rows_change();
  try {
    load.load(*setup_.executor);
  } catch (const DataLoss& loss) {
    throw DataLoss(fail_restore(progress, loss.what()));
  } catch (const std::exception& error) {
    throw IoError(fail_restore(progress, error.what()));
  }
}

std::shared_ptr<Tables> Restoration::read_anew() const {
  auto tables = std::make_shared<Tables>(setup_.assembly.tables, setup_.hosts, setup_.sharding());
  checkpoint::RowLoad(reader_, targets(*tables)).load(*setup_.executor);
  std::set<std::pair<std::int64_t, std::int32_t>> read;
  for (const checkpoint::MatchedVariable& variable : matching_.read)
    read.emplace(variable.table, variable.slot);
  tables->initialize(setup_.assembly.tables, setup_.options.seed, *setup_.executor,
                     [&](std::int64_t table, std::int32_t slot) {
                       return read.count({table, slot}) > 0;
                     });
  return tables;
}

void Restoration::warn_of_other_numerics() const {
  const std::int64_t saved = reader_.manifest().numerics_version;
  if (saved == kNumericsVersion) return;
  setup_.warn("restore: " + reader_.directory().string() + " is of numerics version " +
              std::to_string(saved) + ", this library of " + std::to_string(kNumericsVersion) +
              ": training goes on, not to the same bits");
}

}  // namespace embertable::engine
