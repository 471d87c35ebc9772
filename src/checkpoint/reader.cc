#include "checkpoint/reader.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "checkpoint/run_directory.h"
#include "embertable/errors.h"

namespace embertable::checkpoint {
namespace {

namespace fs = std::filesystem;

/// Checks that the data files exist and are complete.
void check_sizes(FileSystem& files, const fs::path& directory, const Manifest& manifest) {
  for (const FileRecord& file : manifest.files) {
    const fs::path path = directory / file.name;
    const auto found = files.stat(path);
    if (!found || found->directory)
      throw DataLoss(path.string() + ": cannot open: the manifest names it, but it is missing");
    if (found->bytes != file.bytes)
      throw DataLoss(path.string() + ": cannot read: has " + std::to_string(found->bytes) +
                     " bytes, the manifest says " + std::to_string(file.bytes));
  }
}

Manifest read_step(FileSystem& files, const fs::path& directory) {
  const fs::path path = directory / kManifestName;
  Manifest manifest = parse_manifest(read_file(files, path, kMaxManifestBytes), path);
  check_sizes(files, directory, manifest);
  return manifest;
}

}  // namespace

std::optional<std::string> refusal_of_step(FileSystem& files, const fs::path& run,
                                           std::int64_t step) {
  const fs::path directory = run / step_name(step);
  if (!files.stat(directory / kManifestName))
    return (directory / kManifestName).string() + ": cannot open: it is missing";
  try {
    const std::int64_t found = read_step(files, directory).step;
    if (found == step) return std::nullopt;
    return directory.string() + ": its manifest is that of step " + std::to_string(found);
  } catch (const DataLoss& loss) {
    return loss.what();
  }
}

Latest find_latest(FileSystem& files, const fs::path& run) {
  const std::vector<std::int64_t> steps = list_steps(files, run);
  Latest latest;
  std::string skipped;
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    auto why = refusal_of_step(files, run, *step);
    if (!why) {
      latest.directory = run / step_name(*step);
      return latest;
    }
    skipped += "; " + *why;
    latest.skipped.push_back(*std::move(why));
  }
  throw IoError(run.string() + ": cannot open: there is no checkpoint" + skipped);
}

Reader::Reader(FileSystem& files, const fs::path& path) : files_(&files), directory_(path) {
  if (!files.stat(path / kManifestName)) {
    Latest latest = find_latest(files, path);
    directory_ = std::move(latest.directory);
    skipped_ = std::move(latest.skipped);
  }
  manifest_ = read_step(files, directory_);
}

VariableReader Reader::variable(std::string_view name) const {
  for (std::size_t i = 0; i < manifest_.tables.size(); ++i) {
    const SavedTable& table = manifest_.tables[i];
    if (table.name == name) return variable(static_cast<std::int64_t>(i), -1);
    for (std::size_t slot = 0; slot < table.slots.size(); ++slot)
      if (variable_name(table.name, table.slots[slot].name) == name)
        return variable(static_cast<std::int64_t>(i), static_cast<std::int32_t>(slot));
  }
  throw KeyError(directory_.string() + ": there is no variable '" + std::string(name) + "'");
}

VariableReader Reader::variable(std::int64_t table, std::int32_t slot) const {
  return {*this, table, slot};
}

template <class Take>
void Reader::read_tensors(FileKind kind, Take take) const {
  for (const FileRecord& record : manifest_.files) {
    if (record.kind != kind) continue;
    BlockFile file(*files_, directory_, record);
    for (const StoredTensor& tensor : record.tensors) {
      std::string bytes(tensor.bytes, '\0');
      file.read(tensor.offset, std::as_writable_bytes(std::span(bytes.data(), bytes.size())));
      take(tensor, std::move(bytes));
    }
  }
}

CallerState Reader::caller_state(bool with_tensors) const {
  CallerState state{.json = manifest_.user_json};
  if (with_tensors)
    read_tensors(FileKind::kTensors, [&](const StoredTensor& tensor, std::string bytes) {
      state.tensors[tensor.name] = {tensor.dtype, tensor.shape, std::move(bytes)};
    });
  read_tensors(FileKind::kBlobs, [&](const StoredTensor& tensor, std::string bytes) {
    state.blobs[tensor.name] = std::move(bytes);
  });
  return state;
}

std::map<std::string, std::string> Reader::id_maps() const {
  std::map<std::string, std::string> maps;
  read_tensors(FileKind::kIdMaps, [&](const StoredTensor& tensor, std::string bytes) {
    maps[tensor.name] = std::move(bytes);
  });
  return maps;
}

void Reader::verify() const {
  for (const FileRecord& record : manifest_.files) BlockFile(*files_, directory_, record).verify();
}

VariableReader::VariableReader(const Reader& reader, std::int64_t table, std::int32_t slot)
    : reader_(&reader) {
  const SavedTable& saved = reader.manifest().tables.at(table);
  rows_ = saved.vocabulary_size;
  width_ = slot >= 0 && saved.slots.at(slot).row_wise ? 1 : saved.dim;
  for (const FileRecord& record : reader.manifest().files) {
    if (record.kind != FileKind::kTable || record.table != table) continue;
    const StoredTensor& tensor = record.tensors[slot + 1];
    name_ = tensor.name;
    parts_.push_back({&record, tensor.offset, nullptr});
  }
}

void VariableReader::read(const Progression& wanted, float* out, std::int64_t stride) {
  if (wanted.count == 0) return;
  if (wanted.first < 0 || wanted.first >= rows_ ||
      wanted.count - 1 > (rows_ - 1 - wanted.first) / wanted.step)
    throw IndexError("variable '" + name_ + "' of " + reader_->directory().string() + " has " +
                     std::to_string(rows_) + " rows, asked for " + std::to_string(wanted.count) +
                     " from row " + std::to_string(wanted.first) + " on, every " +
                     std::to_string(wanted.step));
  for (Part& part : parts_) {
    const Overlap both = overlap(wanted, part.record->rows);
    if (both.a_index.count > 0) read_part(part, both.b_index, both.a_index, out, stride);
  }
}

void VariableReader::read(std::int64_t first, std::span<float> out) {
  read({.first = first, .step = 1, .count = static_cast<std::int64_t>(out.size()) / width_},
       out.data(), width_);
}

/// Reads row local[i] of the part to place[i] of `out`.
void VariableReader::read_part(Part& part, const Progression& local, const Progression& place,
                               float* out, std::int64_t stride) {
  if (!part.file)
    part.file = std::make_unique<BlockFile>(*reader_->files_, reader_->directory_, *part.record);
  const auto row_bytes = width_ * static_cast<std::int64_t>(sizeof(float));
  const bool adjoining = local.step == 1 && place.step == 1 && stride == width_;
  const std::int64_t at_once = adjoining ? local.count : 1;
  for (std::int64_t i = 0; i < local.count; i += at_once) {
    const std::span<float> rows(out + place[i] * stride, at_once * width_);
    part.file->read(part.offset + local[i] * row_bytes, std::as_writable_bytes(rows));
  }
}

}  // namespace embertable::checkpoint
