#include "checkpoint/writer.h"

#include <utility>

#include "checkpoint/manifest_check.h"
#include "checkpoint/new_file.h"
#include "embertable/errors.h"
#include "rows/placement.h"

namespace embertable::checkpoint {
namespace {

/// Flushes the names that lead to a run without steps, because a killed save may have created them
/// without flushing.
void flush_ancestors(const OpenRun& run) {
  if (!list_steps(run.opened()).empty()) return;
  for (std::filesystem::path path = run.directory(); path != directory_of(path) && path != ".";) {
    path = directory_of(path);
    std::unique_ptr<Directory> opened;
    try {
      opened = run.files().open_directory(path);
    } catch (const IoError&) {  // not ours to open, so not made by us
      continue;
    }
    opened->sync();
  }
}

/// Makes a directory for an unfinished step and opens it: what comes to have its name meanwhile is
/// not written to.
std::unique_ptr<Directory> make_unfinished(Directory& run, const std::filesystem::path& path) {
  const std::string name = path.filename();
  run.make_directory(name);
  std::unique_ptr<Directory> opened = run.open(name);
  if (!opened)
    throw IoError(path.string() + ": cannot open directory: it was just made and is away");
  return opened;
}

}  // namespace

Writer::Writer(const OpenRun& run, Manifest manifest)
    : alone_(run.changing()), run_(run), manifest_(std::move(manifest)) {
  check_savable(manifest_);
  flush_ancestors(run_);
  require_not_saved();
  remove_leftovers(run_.opened());
  name_ = temporary_name(run_.opened(), manifest_.step);
  opened_ = make_unfinished(run_.opened(), run_.directory() / name_);
}

Writer::~Writer() {
  if (named_) return;
  try {
    remove_all(run_.opened(), name_);
  } catch (...) {  // a later save removes it
  }
}

void Writer::add_state(const CallerState& caller, const std::map<std::string, std::string>& id_maps,
                       std::map<std::string, TensorSource> sources) {
  manifest_.user_json = caller.json;
  check_savable(manifest_);
  for (const auto& [name, tensor] : caller.tensors)
    if (!sources.emplace(name, source_of(name, tensor)).second)
      throw ValueError("tensor '" + name + "': a variable has this name too");
  if (!sources.empty()) add(write_tensors_file(*opened_, manifest_.step, sources));
  if (!caller.blobs.empty())
    add(write_bytes_file(*opened_, manifest_.step, FileKind::kBlobs, caller.blobs));
  if (!id_maps.empty()) add(write_bytes_file(*opened_, manifest_.step, FileKind::kIdMaps, id_maps));
}

void Writer::require_not_saved() const {
  if (has_name(run_.opened(), step_name(manifest_.step)))
    throw StateError(
        run_.directory().string() + ": step " + std::to_string(manifest_.step) +
        " is already saved there; restore it and go on from it, or save to another directory");
}

std::filesystem::path Writer::commit() {
  check_manifest(manifest_, run_.directory() / name_ / kManifestName);
  const std::string text = to_text(manifest_);
  check_manifest_size(std::ssize(text));
  const std::unique_ptr<File> file = opened_->create(kManifestName);
  file->write(bytes_of(text));
  file->sync();
  opened_->sync();

  const std::string step = step_name(manifest_.step);
  require_not_saved();
  run_.opened().rename(name_, step);
  named_ = true;
  const std::filesystem::path saved = run_.directory() / step;
  flush_new_name(saved, "is saved", [&] { run_.opened().sync(); });
  return saved;
}

std::filesystem::path save(const OpenRun& run, Manifest manifest, const ShardSource& source,
                           const CallerState& caller,
                           const std::map<std::string, std::string>& id_maps) {
  Writer writer(run, std::move(manifest));
  writer.add_state(caller, id_maps);  // small, and may be refused: before the rows
  const Manifest& saved = writer.manifest();
  for (std::size_t table = 0; table < saved.tables.size(); ++table) {
    for (std::int32_t host = 0; host < saved.topology.hosts; ++host) {
      const auto index = static_cast<std::int64_t>(table);
      const Progression rows =
          rows_of_host(saved.topology, saved.tables[table].vocabulary_size, host);
      if (rows.count > 0)
        writer.add(
            write_table_file(writer.opened(), saved, index, host, rows, source(index, host)));
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
