#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <mutex>
#include <string>

#include "checkpoint/data_file.h"
#include "checkpoint/file.h"
#include "checkpoint/manifest.h"
#include "checkpoint/run_directory.h"
#include "embertable/checkpoint.h"

namespace embertable::checkpoint {

/// One save: files are added to a temporary directory, and `commit` makes it a step. Until `commit`
/// returns, the run directory keeps its contents. At most one writer at a time for an `OpenRun`:
/// the constructor of the next one waits. For one thread; data files may be written by any thread.
class Writer {
 public:
  /// Removes leftovers of earlier saves and creates the temporary directory. Requires: `run`
  /// outlives the writer, `manifest` has no files yet. Throws ValueError as `check_savable`,
  /// StateError if the step exists, IoError.
  Writer(const OpenRun& run, Manifest manifest);

  /// Without `commit`, removes the temporary directory.
  ~Writer();
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  /// Name of the temporary directory in the run, and the open directory for the data files.
  const std::string& name() const noexcept { return name_; }
  Directory& opened() const noexcept { return *opened_; }
  const Manifest& manifest() const noexcept { return manifest_; }

  /// Adds a file that was written and flushed, here or by another rank.
  void add(FileRecord file) { manifest_.files.push_back(std::move(file)); }

  /// Writes everything but rows: the caller's state, the id maps and `sources`, which are tensors
  /// beside the caller's. `caller.json` replaces the manifest's user_json. Throws ValueError as the
  /// functions of data_file.h, or for a name that two tensors have; IoError.
  void add_state(const CallerState& caller, const std::map<std::string, std::string>& id_maps = {},
                 std::map<std::string, TensorSource> sources = {});

  /// Writes the manifest, flushes the directory, renames it, flushes the run directory; returns the
  /// step's directory. Throws DataLoss if the files do not make up the tables, IoError. If
  /// only the last flush fails, the error says that the step is saved until a power loss may undo
  /// it.
  std::filesystem::path commit();

 private:
  void require_not_saved() const;

  std::unique_lock<ChangeMutex> alone_;
  const OpenRun& run_;
  std::string name_;  ///< temporary name of the step
  std::unique_ptr<Directory> opened_;
  Manifest manifest_;
  bool named_ = false;  ///< the temporary name no longer belongs to this save
};

/// Saves in one call: `source(table, host)` gives the rows of each shard that `rows_of_host` names,
/// and is not called for empty ones. Throws as Writer; returns the step's directory.
using ShardSource = std::function<RowSource(std::int64_t table, std::int32_t host)>;
std::filesystem::path save(const OpenRun& run, Manifest manifest, const ShardSource& source,
                           const CallerState& caller = {},
                           const std::map<std::string, std::string>& id_maps = {});

/// Returns the rows of a table that a host owns by the manifest's topology.
Progression rows_of_host(const Topology& topology, std::int64_t vocabulary_size, std::int32_t host);

}  // namespace embertable::checkpoint
