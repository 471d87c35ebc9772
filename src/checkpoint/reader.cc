#include "checkpoint/reader.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "checkpoint/run_directory.h"
#include "checkpoint/stored_rows.h"
#include "embertable/errors.h"
#include "embertable/executor.h"

namespace embertable::checkpoint {
namespace {

namespace fs = std::filesystem;

/// Opens the directory of a step by its name; null if nothing has the name.
using Enter = FunctionRef<std::unique_ptr<Directory>()>;

/// How often a step may be removed while it is opened before that is an error. A writer that prunes
/// ten times a second rarely does it twice in a row.
constexpr int kMaxAttempts = 100;

/// Bytes of rows that are converted at once, unless one row has more.
constexpr std::int64_t kStoredBytes = 64 << 10;

/// Opens the data files and checks that they exist and are complete.
std::vector<std::shared_ptr<const File>> open_files(Directory& opened, const Manifest& manifest,
                                                    const fs::path& directory) {
  std::vector<std::shared_ptr<const File>> files;
  const std::size_t most = most_open_files();
  for (const FileRecord& record : manifest.files) {
    const fs::path path = directory / record.name;
    std::shared_ptr<const File> file = opened.open_file(record.name);
    if (!file)
      throw DataLoss(path.string() +
                     ": cannot open: the manifest names it, but there is no such file");
    if (const std::int64_t bytes = file->size(); bytes != record.bytes)
      throw DataLoss(path.string() + ": cannot read: has " + std::to_string(bytes) +
                     " bytes, the manifest says " + std::to_string(record.bytes));
    files.push_back(files.size() < most ? std::move(file) : nullptr);
  }
  return files;
}

/// Returns the text of a step's manifest; empty if it is missing.
std::optional<std::string> manifest_text(Directory& opened, const fs::path& directory) {
  const std::unique_ptr<File> file = opened.open_file(kManifestName);
  if (!file) return std::nullopt;
  return read_file(*file, directory / kManifestName, kMaxManifestBytes);
}

/// Opens a step; empty if it lost its name meanwhile: it was removed, or another one took its
/// place. Throws DataLoss.
std::optional<OpenStep> open_step(const fs::path& directory, Enter enter) {
  OpenStep step{.directory = directory, .opened = enter(), .manifest = {}, .files = {}};
  if (!step.opened) return std::nullopt;
  const fs::path path = directory / kManifestName;
  std::optional<std::string> text;
  try {
    text = manifest_text(*step.opened, directory);
    if (!text) throw DataLoss(path.string() + ": cannot open: it is missing");
    step.manifest = parse_manifest(*text, path);
    step.files = open_files(*step.opened, step.manifest, directory);
    return step;
  } catch (const DataLoss&) {
    const std::unique_ptr<Directory> named = enter();
    if (named && manifest_text(*named, directory) == text) throw;
    return std::nullopt;
  }
}

/// Opens a step of a run; empty as above. Throws DataLoss also for a step of another number.
std::optional<OpenStep> open_numbered(Directory& opened, const fs::path& run, std::int64_t number) {
  const std::string name = step_name(number);
  auto step = open_step(run / name, [&] { return opened.enter(name); });
  if (!step && has_name(opened, name) && !opened.enter(name))
    throw DataLoss((run / name).string() + ": cannot open: it is no directory");
  if (step && step->manifest.step != number)
    throw DataLoss((run / name).string() + ": its manifest is that of step " +
                   std::to_string(step->manifest.step));
  return step;
}

/// Opens the latest step of a run and lists why higher ones were skipped; empty if a step that was
/// looked at is removed meanwhile. Throws NotFound if there is none, DataLoss if all are damaged.
std::optional<OpenStep> open_latest(Directory& opened, const fs::path& run,
                                    std::vector<std::string>& skipped) {
  const std::vector<std::int64_t> steps = list_steps(opened);
  skipped.clear();
  std::string listed;
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    try {
      return open_numbered(opened, run, *step);
    } catch (const DataLoss& loss) {
      skipped.emplace_back(loss.what());
      listed += "; " + skipped.back();
    }
  }
  const std::string text = run.string() + ": cannot open: there is no checkpoint" + listed;
  if (!skipped.empty()) throw DataLoss(text);
  throw NotFound(text);
}

/// Opens a directory, also through links; null if nothing or something else has the path.
std::unique_ptr<Directory> enter_path(FileSystem& files, const fs::path& path) {
  const auto found = files.stat(path);
  if (!found || !found->directory) return nullptr;
  try {
    return files.open_directory(path);
  } catch (const IoError&) {
    if (files.stat(path)) throw;
    return nullptr;  // it was removed just now
  }
}

OpenStep open_any(FileSystem& files, const fs::path& path, std::vector<std::string>& skipped) {
  for (int attempt = 0; attempt < kMaxAttempts; ++attempt) {
    const std::unique_ptr<Directory> opened = enter_path(files, path);
    if (!opened)
      throw NotFound(path.string() + ": cannot open: " +
                     (attempt == 0 ? "there is no checkpoint" : "the step was removed"));
    std::optional<OpenStep> step = opened->open_file(kManifestName)
                                       ? open_step(path, [&] { return enter_path(files, path); })
                                       : open_latest(*opened, path, skipped);
    if (step) return *std::move(step);
  }
  throw IoError(path.string() + ": cannot open: its steps are removed faster than they are opened");
}

}  // namespace

std::optional<std::string> refusal_of_step(Directory& opened, const fs::path& run,
                                           std::int64_t step) {
  try {
    if (open_numbered(opened, run, step)) return std::nullopt;
    return (run / step_name(step)).string() + ": cannot open: the step was removed";
  } catch (const DataLoss& loss) {
    return loss.what();
  }
}

Reader::Reader(FileSystem& files, const fs::path& path)
    : files_(&files), step_(open_any(files, path, skipped_)) {}

std::shared_ptr<const File> Reader::open(const FileRecord& record) const {
  if (held(record)) return held(record);
  if (std::shared_ptr<const File> file = step_.opened->open_file(record.name)) return file;
  const fs::path path = directory() / record.name;
  if (!step_.opened->open_file(kManifestName) || !files_->stat(directory() / kManifestName))
    throw IoError(path.string() + ": cannot open: the step was removed");
  throw DataLoss(path.string() + ": cannot open: the manifest names it, but there is no such file");
}

BlockFile Reader::blocks_of(const FileRecord& record) const {
  return {open(record), directory() / record.name, record};
}

const std::shared_ptr<const File>& Reader::held(const FileRecord& record) const {
  return step_.files[&record - manifest().files.data()];
}

void Reader::close_tables() noexcept {
  for (const FileRecord& record : manifest().files)
    if (record.kind == FileKind::kTable) step_.files[&record - manifest().files.data()].reset();
}

VariableReader Reader::variable(std::string_view name) const {
  for (std::size_t i = 0; i < manifest().tables.size(); ++i) {
    const SavedTable& table = manifest().tables[i];
    if (table.name == name) return variable(static_cast<std::int64_t>(i), -1);
    for (std::size_t slot = 0; slot < table.slots.size(); ++slot)
      if (variable_name(table.name, table.slots[slot].name) == name)
        return variable(static_cast<std::int64_t>(i), static_cast<std::int32_t>(slot));
  }
  throw KeyError(directory().string() + ": there is no variable '" + std::string(name) + "'");
}

VariableReader Reader::variable(std::int64_t table, std::int32_t slot) const {
  return {*this, table, slot};
}

template <class Take>
void Reader::read_tensors(FileKind kind, Take take) const {
  for (const FileRecord& record : manifest().files) {
    if (record.kind != kind) continue;
    BlockFile file = blocks_of(record);
    for (const StoredTensor& tensor : record.tensors) {
      std::string bytes(tensor.bytes, '\0');
      file.read(tensor.offset, std::as_writable_bytes(std::span(bytes.data(), bytes.size())));
      take(tensor, std::move(bytes));
    }
  }
}

CallerState Reader::caller_state(bool with_tensors) const {
  CallerState state{.json = manifest().user_json};
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
  for (const FileRecord& record : manifest().files) blocks_of(record).verify();
}

VariableReader::VariableReader(const Reader& reader, std::int64_t table, std::int32_t slot)
    : reader_(&reader), most_open_(most_open_files()) {
  const SavedTable& saved = reader.manifest().tables.at(table);
  rows_ = saved.vocabulary_size;
  width_ = slot >= 0 && saved.slots.at(slot).row_wise ? 1 : saved.dim;
  type_ = slot < 0 ? saved.row_type : RowType::kFloat32;
  for (const FileRecord& record : reader.manifest().files) {
    if (record.kind != FileKind::kTable || record.table != table) continue;
    const StoredTensor& tensor = record.tensors[slot + 1];
    name_ = tensor.name;
    parts_.push_back({&record, tensor.offset, reader.held(record), nullptr});
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
    if (both.a_index.count == 0) continue;
    open(part);
    try {
      read_part(part, both.b_index, both.a_index, out, stride);
    } catch (...) {
      let_go(part, false);
      throw;
    }
    let_go(part, both.b_index[both.b_index.count - 1] + 1 == part.record->rows.count);
  }
}

void VariableReader::read(std::int64_t first, std::span<float> out) {
  read({.first = first, .step = 1, .count = static_cast<std::int64_t>(out.size()) / width_},
       out.data(), width_);
}

void VariableReader::open(Part& part) {
  if (part.file && part.file->is_open()) return;
  std::shared_ptr<const File> file = part.held ? part.held : reader_->open(*part.record);
  if (part.file)
    part.file->reopen(std::move(file));
  else
    part.file = std::make_unique<BlockFile>(std::move(file),
                                            reader_->directory() / part.record->name, *part.record);
  if (!part.held) ++opened_;
}

/// Closes the file of a part if it is finished or one too many; a part that is finished gives up
/// its last block, too.
void VariableReader::let_go(Part& part, bool finished) noexcept {
  if (!finished && (part.held || opened_ <= most_open_)) return;
  if (!part.held) --opened_;
  if (finished)
    part.file.reset();
  else
    part.file->close();
}

/// Reads row local[i] of the part to place[i] of `out`. Requires: the part is open.
void VariableReader::read_part(Part& part, const Progression& local, const Progression& place,
                               float* out, std::int64_t stride) {
  const std::int64_t row_bytes = stored_row_bytes(type_, width_);
  const bool adjoining = local.step == 1 && place.step == 1 && stride == width_;
  // Rows that are converted pass through a buffer, some at a time.
  const std::int64_t most = type_ == RowType::kFloat32
                                ? local.count
                                : std::max<std::int64_t>(1, kStoredBytes / row_bytes);
  const std::int64_t at_once = adjoining ? most : 1;
  for (std::int64_t i = 0; i < local.count; i += at_once) {
    const std::int64_t count = std::min(at_once, local.count - i);
    const std::span<float> rows(out + place[i] * stride, count * width_);
    const std::int64_t offset = part.offset + local[i] * row_bytes;
    if (type_ == RowType::kFloat32) {
      part.file->read(offset, std::as_writable_bytes(rows));
      continue;
    }
    stored_.resize(count * row_bytes);
    part.file->read(offset, stored_);
    unstore_rows(type_, width_, stored_.data(), rows);
  }
}

}  // namespace embertable::checkpoint
