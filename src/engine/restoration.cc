#include "engine/restoration.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "base/interruption.h"
#include "checkpoint/id_maps.h"
#include "checkpoint/writer.h"
#include "embertable/errors.h"
#include "embertable/version.h"
#include "engine/setup/manifest_of.h"

namespace embertable::engine {
namespace {

/// Marks the engine as failed and returns the message of the error to throw.
std::string fail_restore(Progress& progress, const char* why) {
  const std::string message = std::string(why) + "; its tables are half read; restore again";
  progress.fail("in a restore: " + message);
  return "restore: the engine failed: " + message;
}

/// Refuses rows that no update could step.
void require_trainable(const checkpoint::SavedTable& table, const std::filesystem::path& step) {
  if (table.row_type != RowType::kInt8) return;
  throw ValueError(
      "restore: table '" + table.name + "' of " + step.string() +
      " must have float32 or bfloat16 rows, got int8, which are looked up by a ServingEmbedding "
      "(`embertable predict`) but not trained");
}

/// Names a restore by its options: "restore of tables 'a', 'b', partial, growing 'a'".
std::string what_of(const RestoreOptions& options) {
  const auto named = [](std::string text, const std::vector<std::string>& names) {
    for (const std::string& name : names)
      text += (&name == names.data() ? " '" : ", '") + name + "'";
    return text;
  };
  std::string what = "restore";
  if (!options.tables.empty()) what = named("restore of tables", options.tables);
  if (options.partial) what += ", partial";
  if (!options.grow.empty()) what += named(", growing", options.grow);
  return what;
}

}  // namespace

Restoration::Restoration(const Setup& setup, const checkpoint::StepSource& source,
                         const RestoreOptions& options)
    : setup_(setup) {
  HostGroup& hosts = *setup.group;
  if (source.opened) reader_.emplace(*source.opened);
  const std::string what = what_of(options);  // the same on all hosts
  hosts.together(what, [&] {
    if (!reader_ && hosts.is_first()) reader_.emplace(*source.files, *source.path);
  });
  const std::string step = hosts.from_first(
      "restore: name of the step", reader_ ? reader_->directory().filename().string() : "");
  hosts.together("restore: opening the step", [&] {
    if (reader_ && reader_->directory().filename() != step) {
      throw ValueError("restore: every host must have opened the same step, got " +
                       reader_->directory().string() + " where host 0 has " + step);
    }
    if (!reader_) {
      const std::filesystem::path& path = *source.path;
      reader_.emplace(*source.files, path.filename() == step ? path : path / step);
    }
    for (const checkpoint::SavedTable& table : reader_->manifest().tables)
      require_trainable(table, reader_->directory());
    matching_ =
        checkpoint::match({.name = "the engine", .can_grow = true}, manifest_of(setup, 0).tables,
                          reader_->manifest().tables, options, reader_->directory());
  });
}

RestoreReport Restoration::report() const {
  RestoreReport report;
  setup_.group->together("restore: reading the caller's state", [&] {
    report = read_report();
    warn_of_other_numerics();
  });
  return report;
}

RestoreReport Restoration::read_report() const {
  return {.step = step(),
          .directory = reader_->directory(),
          .caller = reader_->caller_state(),
          .id_maps = checkpoint::read_id_maps(*reader_),
          .missing = matching_.missing,
          .extra = matching_.extra,
          .mismatched = matching_.mismatched,
          .skipped = reader_->skipped(),
          .grown = matching_.grown};
}

bool Restoration::is_full() const {
  std::int64_t variables = 0;
  for (const ResolvedTable& table : setup_.assembly.tables)
    variables += 1 + std::ssize(table.slots());
  return matching_.missing.empty() && matching_.mismatched.empty() &&
         std::ssize(matching_.read) == variables;
}

void Restoration::require_full_restore(const std::string& failure) const {
  if (is_full()) return;
  throw StateError("restore: the engine failed " + failure +
                   ". Every variable must be restored, got a restore that leaves some out");
}

std::vector<checkpoint::RowTarget> Restoration::targets(const Tables& tables) const {
  const checkpoint::Topology topology = {.hosts = setup_.all_hosts, .sharding = setup_.sharding()};
  std::vector<checkpoint::RowTarget> targets;
  for (const checkpoint::MatchedVariable& variable : matching_.read) {
    const StoredTable& table = tables.tables()[variable.table];
    for (const Shard& shard : table.shards) {
      if (shard.rows() == 0) continue;
      const checkpoint::Progression rows =
          table.placement.replicated()
              ? checkpoint::Progression{.count = table.vocabulary_size}
              : checkpoint::rows_of_host(topology, table.vocabulary_size, shard.host());
      targets.push_back({variable.saved_table, variable.saved_slot, rows,
                         shard.memory(variable.slot), shard.stride(variable.slot),
                         shard.type(variable.slot)});
    }
  }
  return targets;
}

/// Gives variables that have more rows than were saved their first values; rows are read over them.
void Restoration::initialize_grown(Tables& tables, Tables::Memory memory) const {
  if (matching_.grown.empty()) return;
  tables.initialize(setup_.assembly.tables, setup_.options.seed, *setup_.executor, memory,
                    [&](std::int64_t table, std::int32_t slot) {
                      return std::none_of(matching_.read.begin(), matching_.read.end(),
                                          [&](const checkpoint::MatchedVariable& one) {
                                            return one.grown && one.table == table &&
                                                   one.slot == slot;
                                          });
                    });
}

void Restoration::read_into(Tables& tables, Progress& progress,
                            FunctionRef<void()> before_rows_change) const {
  std::optional<checkpoint::RowLoad> load;
  setup_.group->together("restore: checking", [&] {
    load.emplace(*reader_, targets(tables));
    load->check(*setup_.executor);
  });
  before_rows_change();
  const Interruption none(nullptr);  // half of the rows would be of another step
  try {
    setup_.group->together("restore: reading", [&] {
      initialize_grown(tables, Tables::Memory::kValues);
      load->load(*setup_.executor);
    });
  } catch (const DataLoss& loss) {
    throw DataLoss(fail_restore(progress, loss.what()));
  } catch (const StateError& of_another_host) {
    throw StateError(fail_restore(progress, of_another_host.what()));
  } catch (const std::exception& error) {
    throw IoError(fail_restore(progress, error.what()));
  } catch (...) {
    fail_restore(progress, "unknown error");
    throw;
  }
}

std::shared_ptr<Tables> Restoration::read_anew() const {
  std::shared_ptr<Tables> tables;
  setup_.group->together("restore: reading", [&] {
    tables = std::make_shared<Tables>(setup_.assembly.tables, setup_.all_hosts, setup_.sharding(),
                                      setup_.first_host, setup_.hosts, setup_.options.seed);
    initialize_grown(*tables, Tables::Memory::kZeros);
    checkpoint::RowLoad(*reader_, targets(*tables)).load(*setup_.executor);
    std::set<std::pair<std::int64_t, std::int32_t>> read;
    for (const checkpoint::MatchedVariable& variable : matching_.read)
      read.emplace(variable.table, variable.slot);
    tables->initialize(setup_.assembly.tables, setup_.options.seed, *setup_.executor,
                       Tables::Memory::kZeros, [&](std::int64_t table, std::int32_t slot) {
                         return read.count({table, slot}) > 0;
                       });
  });
  return tables;
}

void Restoration::warn_of_other_numerics() const {
  const std::int64_t saved = reader_->manifest().numerics_version;
  if (saved == kNumericsVersion) return;
  setup_.warn("restore: " + reader_->directory().string() + " is of numerics version " +
              std::to_string(saved) + ", this library of " + std::to_string(kNumericsVersion) +
              ": further steps give other bits than that version's" +
              (saved < 2 ? " where the weights of a sample cancel: its gradient counts as zeros "
                           "since version 2"
                         : ""));
}

}  // namespace embertable::engine
