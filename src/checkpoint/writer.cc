#include "checkpoint/writer.h"

#include <utility>

#include "checkpoint/manifest_check.h"
#include "embertable/errors.h"
#include "rows/placement.h"

namespace embertable::checkpoint {
namespace {

/// Removes a path if it can: for use when an error is already on its way or nothing depends on it.
void try_remove(FileSystem& files, const std::filesystem::path& path) noexcept {
  try {
    remove_all(files, path);
  } catch (...) {  // a later save removes it
  }
}

/// Flushes the names that lead to a run without steps, because a killed save may have created them
/// without flushing.
void flush_ancestors(FileSystem& files, const std::filesystem::path& run) {
  if (!list_steps(files, run).empty()) return;
  for (std::filesystem::path path = run; path != directory_of(path) && path != ".";) {
    path = directory_of(path);
    try {
      files.sync_directory(path);
    } catch (const IoError&) {  // not ours to open, so not made by us
    }
  }
}

}  // namespace

Writer::Writer(const OpenRun& run, Manifest manifest, IfSaved if_saved)
    : alone_(run.changing()),
      files_(run.files()),
      run_(run.directory()),
      manifest_(std::move(manifest)),
      if_saved_(if_saved) {
  check_savable(manifest_);
  flush_ancestors(files_, run_);
  is_replaced();
  remove_leftovers(files_, run_);
  directory_ = run_ / temporary_name(files_, run_, manifest_.step);
  files_.make_directory(directory_);
}

Writer::~Writer() {
  if (!named_) try_remove(files_, directory_);
}

void Writer::add_state(const CallerState& caller, const std::map<std::string, std::string>& id_maps,
                       std::map<std::string, TensorSource> sources) {
  manifest_.user_json = caller.json;
  check_savable(manifest_);
  for (const auto& [name, tensor] : caller.tensors)
    if (!sources.emplace(name, source_of(name, tensor)).second)
      throw ValueError("tensor '" + name + "': a variable has this name too");
  if (!sources.empty()) add(write_tensors_file(files_, directory_, manifest_.step, sources));
  if (!caller.blobs.empty())
    add(write_bytes_file(files_, directory_, manifest_.step, FileKind::kBlobs, caller.blobs));
  if (!id_maps.empty())
    add(write_bytes_file(files_, directory_, manifest_.step, FileKind::kIdMaps, id_maps));
}

bool Writer::is_replaced() const {
  const bool saved = has_name(files_, run_, step_name(manifest_.step));
  if (saved && if_saved_ == IfSaved::kRefuse)
    throw StateError(run_.string() + ": step " + std::to_string(manifest_.step) +
                     " is already saved there");
  return saved;
}

std::filesystem::path Writer::commit() {
  check_manifest(manifest_, directory_ / kManifestName);
  const std::string text = to_text(manifest_);
  const std::unique_ptr<File> file = files_.create(directory_ / kManifestName);
  file->write(bytes_of(text));
  file->sync();
  files_.sync_directory(directory_);

  const std::filesystem::path step = run_ / step_name(manifest_.step);
  const bool replaces = is_replaced();
  if (replaces) {
    files_.exchange(directory_, step);
  } else {
    files_.rename(directory_, step);
  }
  named_ = true;
  files_.sync_directory(run_);
  if (replaces) try_remove(files_, directory_);
  return step;
}

std::filesystem::path save(const OpenRun& run, Manifest manifest, const ShardSource& source,
                           const CallerState& caller,
                           const std::map<std::string, std::string>& id_maps, IfSaved if_saved) {
  Writer writer(run, std::move(manifest), if_saved);
  writer.add_state(caller, id_maps);  // small, and may be refused: before the rows
  const Manifest& saved = writer.manifest();
  for (std::size_t table = 0; table < saved.tables.size(); ++table) {
    for (std::int32_t host = 0; host < saved.topology.hosts; ++host) {
      const auto index = static_cast<std::int64_t>(table);
      const Progression rows =
          rows_of_host(saved.topology, saved.tables[table].vocabulary_size, host);
      if (rows.count > 0)
        writer.add(write_table_file(run.files(), writer.directory(), saved, index, host, rows,
                                    source(index, host)));
    }
  }
  return writer.commit();
}

Progression rows_of_host(const Topology& topology, std::int64_t vocabulary_size,
                         std::int32_t host) {
  const Placement placement(vocabulary_size, topology.hosts, topology.sharding);
  return {.first = placement.global_row(host, 0),
          .step = topology.sharding == Sharding::kMod ? topology.hosts : 1,
          .count = placement.shard_rows(host)};
}

}  // namespace embertable::checkpoint
