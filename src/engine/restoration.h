#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "checkpoint/matching.h"
#include "checkpoint/reader.h"
#include "checkpoint/row_load.h"
#include "engine/schedule/progress.h"
#include "engine/setup/setup.h"
#include "engine/tables.h"

namespace embertable::engine {

/// A checkpoint that is opened and matched with an engine's variables, ready to be read into its
/// tables.
class Restoration {
 public:
  /// Reads the manifest, but no rows. Throws as Embedding::restore. Hosts that are several call
  /// this and all that follows together; they read the step that host 0 finds, or has open.
  Restoration(const Setup& setup, const checkpoint::StepSource& source,
              const RestoreOptions& options);

  std::int64_t step() const { return reader_->manifest().step; }

  /// Warns, too, if the checkpoint was written under other numerics.
  RestoreReport report() const;

  /// Whether every variable of the engine is restored.
  bool is_full() const;

  /// Throws StateError unless every variable of the engine is restored. Needed when tables failed
  /// in the middle of a step, because they then hold no step that could be kept. `failure`: when
  /// and why they failed.
  void require_full_restore(const std::string& failure) const;

  /// Reads and checks every block, calls `before_rows_change`, then overwrites the rows. If
  /// overwriting throws, the engine has failed.
  void read_into(Tables& tables, Progress& progress, FunctionRef<void()> before_rows_change) const;

  /// Makes tables; initializers run for the variables that the checkpoint lacks.
  std::shared_ptr<Tables> read_anew() const;

 private:
  RestoreReport read_report() const;
  void warn_of_other_numerics() const;
  std::vector<checkpoint::RowTarget> targets(const Tables& tables) const;
  void initialize_grown(Tables& tables, Tables::Memory memory) const;

  const Setup& setup_;
  std::optional<checkpoint::Reader> reader_;
  checkpoint::Matching matching_;
};

}  // namespace embertable::engine
