#include <algorithm>
#include <set>
#include <utility>

#include "checkpoint/id_maps.h"
#include "checkpoint/writer.h"
#include "embertable/errors.h"
#include "embertable/version.h"
#include "engine/core.h"

namespace embertable::engine {
namespace {

using checkpoint::Reader;
using checkpoint::RowTarget;

RestoreReport report_of(const Reader& reader, const checkpoint::Matching& matching) {
  return {.step = reader.manifest().step,
          .directory = reader.directory(),
          .caller = reader.caller_state(),
          .id_maps = checkpoint::read_id_maps(reader),
          .missing = matching.missing,
          .extra = matching.extra,
          .mismatched = matching.mismatched,
          .skipped = reader.skipped()};
}

}  // namespace

RestoreReport Core::restore(checkpoint::FileSystem& files, const std::filesystem::path& path,
                            const RestoreOptions& options) {
  const std::lock_guard no_build(building_);
  const std::lock_guard no_step(stepping_);
  require_restorable();
  const Reader reader(files, path);
  const checkpoint::Manifest& saved = reader.manifest();
  const checkpoint::Matching matching =
      checkpoint::match("the engine", manifest().tables, saved.tables, options, reader.directory());
  require_mending(matching);
  RestoreReport report = report_of(reader, matching);
  if (tables_) {
    read_in_place(reader, matching);
  } else {
    tables_ = read_anew(reader, matching);
  }
  if (options.tables.empty()) taken_ = steps_ = saved.step;
  if (saved.numerics_version != kNumericsVersion)
    warn("restore: " + reader.directory().string() + " is of numerics version " +
         std::to_string(saved.numerics_version) + ", this library of " +
         std::to_string(kNumericsVersion) + ": training goes on, not to the same bits");
  return report;
}

void Core::require_restorable() const {
  if (built_) tables();
  if (failed_.empty()) schedule_.require_no_gradients_outstanding("restore");
}

/// What a failed engine holds is of no step: all of it must go.
void Core::require_mending(const checkpoint::Matching& matching) const {
  if (failed_.empty() || (matching.missing.empty() && matching.mismatched.empty() &&
                          matching.read.size() == num_variables()))
    return;
  throw StateError("restore: the engine failed " + failed_ +
                   ". Every variable must be restored, got a restore that leaves some out");
}

std::size_t Core::num_variables() const {
  std::size_t count = 0;
  for (const ResolvedTable& table : assembly_.tables) count += 1 + table.slots().size();
  return count;
}

std::vector<RowTarget> Core::targets(const Tables& tables,
                                     const checkpoint::Matching& matching) const {
  const checkpoint::Topology topology = {.hosts = hosts_, .sharding = sharding()};
  std::vector<RowTarget> targets;
  for (const checkpoint::MatchedVariable& variable : matching.read) {
    const StoredTable& table = tables.tables()[variable.table];
    for (std::int32_t host = 0; host < hosts_; ++host) {
      const Shard& shard = table.shards[host];
      if (shard.rows() == 0) continue;
      targets.push_back({variable.saved_table, variable.saved_slot,
                         checkpoint::rows_of_host(topology, table.vocabulary_size, host),
                         shard.at(variable.slot, 0), shard.stride(variable.slot)});
    }
  }
  return targets;
}

std::shared_ptr<Tables> Core::read_anew(const Reader& reader,
                                        const checkpoint::Matching& matching) {
  auto tables = std::make_shared<Tables>(assembly_.tables, hosts_, sharding());
  checkpoint::RowLoad(reader, targets(*tables, matching)).load(*executor_);
  std::set<std::pair<std::int64_t, std::int32_t>> read;
  for (const checkpoint::MatchedVariable& variable : matching.read)
    read.emplace(variable.table, variable.slot);
  tables->initialize(assembly_.tables, options_.seed, *executor_,
                     [&](std::int64_t table, std::int32_t slot) {
                       return read.count({table, slot}) > 0;
                     });
  return tables;
}

/// The engine is failed from here on; why, as a message.
std::string Core::half_read(const char* why) {
  const std::string message = std::string(why) + "; its tables are half read; restore again";
  fail("in a restore: " + message);
  return "restore: the engine failed: " + message;
}

void Core::read_in_place(const Reader& reader, const checkpoint::Matching& matching) {
  checkpoint::RowLoad load(reader, targets(*tables_, matching));
  load.check(*executor_);
  // Hosts that gave up on each other cannot meet again.
  std::unique_ptr<HostTeam> team = team_ && !failed_.empty() ? make_team() : nullptr;
  if (failed_.empty()) flush();
  try {
    load.load(*executor_);
  } catch (const DataLoss& loss) {
    throw DataLoss(half_read(loss.what()));
  } catch (const std::exception& error) {
    throw IoError(half_read(error.what()));
  }
  if (failed_.empty()) return;
  schedule_.drop_dequeued();
  taken_ = steps_;
  schedule_.drop_if_next(std::exchange(spent_, nullptr));
  if (team) team_ = std::move(team);
  const std::lock_guard lock(failing_);
  failed_.clear();
  schedule_.resume();
  at_dequeue_.resume();
  at_apply_.resume();
}

}  // namespace embertable::engine
