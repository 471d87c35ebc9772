#include "checkpoint/manifest_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <span>

#include "base/bytes.h"
#include "base/step_number.h"
#include "checkpoint/json_text.h"
#include "checkpoint/stored_rows.h"
#include "embertable/config.h"
#include "embertable/errors.h"

namespace embertable::checkpoint {
namespace {

/// Maximum length of the names of all variables, as far as they are names of tables: that of a
/// table is in the name of each of its slots.
constexpr std::size_t kMaxNameBytes = 16 << 20;

/// Error of a broken rule. Whether the writer's caller or the file is at fault is not known here.
struct Broken {
  std::string what;
};

void require(bool holds, const std::string& what) {
  if (!holds) throw Broken{what};
}

/// Replaces bytes that are not UTF-8.
std::string printable(const std::string& name) {
  const std::string quoted = Json(name).dump(-1, ' ', false, Json::error_handler_t::replace);
  return is_utf8(name) ? name : quoted.substr(1, quoted.size() - 2);
}

/// Shortens a name for messages that are made for each file, needed or not.
std::string shown(const std::string& name) {
  constexpr std::size_t kMost = 200;
  return name.size() > kMost ? name.substr(0, kMost) + "..." : name;
}

void check_names(const Manifest& manifest) {
  std::set<std::string> variables = {std::string(kSafetensorsMetadata)};
  std::size_t name_bytes = 0;
  for (const SavedTable& table : manifest.tables) {
    const std::string subject = "table '" + printable(table.name) + "': ";
    require(is_utf8(table.name), subject + "the name is not UTF-8");
    require(table.vocabulary_size >= 1,
            subject + "vocabulary_size must be >= 1, got " + std::to_string(table.vocabulary_size));
    require(table.dim >= 1, subject + "dim must be >= 1, got " + std::to_string(table.dim));
    require(variables.insert(table.name).second,
            subject + "the name is taken by another variable or reserved");
    name_bytes += table.slots.size() * table.name.size();
    require(name_bytes <= kMaxNameBytes,
            subject + "the names of its slots with its own are too long");
    for (const SavedSlot& slot : table.slots) {
      require(!slot.name.empty(), subject + "a slot must have a name");
      require(variables.insert(variable_name(table.name, slot.name)).second,
              subject + "slot '" + slot.name + "' gives a name that another variable has");
    }
  }
}

void check_features(const Manifest& manifest) {
  for (const SavedFeature& feature : manifest.features) {
    const std::string subject = "feature '" + printable(feature.path) + "': ";
    require(is_utf8(feature.path), subject + "the path is not UTF-8");
    require(is_utf8(feature.name.value_or("")), subject + "the name is not UTF-8");
    require(feature.table >= 0 && feature.table < static_cast<std::int64_t>(manifest.tables.size()),
            subject + "there is no table " + std::to_string(feature.table));
  }
}

bool is_safe_file_name(const std::string& name) {
  return !name.empty() && name.size() <= 255 && name[0] != '.' &&
         name.find_first_of(std::string("/\\\0", 3)) == std::string::npos && name != kManifestName;
}

/// Checks that tensors lie back to back from a multiple of kDataAlignment to the end of the file.
void check_extent(const FileRecord& file, const std::string& subject) {
  require(!file.tensors.empty(), subject + "has no tensors");
  std::int64_t end = file.tensors.front().offset;
  require(end >= kDataAlignment && end % kDataAlignment == 0,
          subject + "data starts at byte " + std::to_string(end) + ", not a multiple of " +
              std::to_string(kDataAlignment));
  std::set<std::string> names = {std::string(kSafetensorsMetadata)};
  for (const StoredTensor& tensor : file.tensors) {
    const std::string which = subject + "tensor '" + tensor.name + "' ";
    require(names.insert(tensor.name).second, which + "has a name that is taken");
    require(tensor.bytes == tensor_bytes(tensor.dtype, tensor.shape),
            which + "has bytes that its dtype and shape contradict");
    require(tensor.offset == end, which + "does not start where the one before ends");
    end += tensor.bytes;
  }
  require(end == file.bytes, subject + "tensors do not end where the file ends");
}

/// Returns "'user' F32 [300, 16]".
std::string text_of(const StoredTensor& tensor) {
  constexpr std::size_t kMost = 8;
  const std::span dims = std::span(tensor.shape).first(std::min(tensor.shape.size(), kMost));
  return fmt::format("'{}' {} [{}{}]", shown(tensor.name), shown(tensor.dtype),
                     fmt::join(dims, ", "), tensor.shape.size() > kMost ? ", ..." : "");
}

/// Checks that names, dtypes and shapes are those of the table's rows.
void check_tensors(const FileRecord& file, const SavedTable& table, const std::string& subject) {
  const std::vector<StoredTensor> expected = table_tensors(table, file.rows.count);
  const auto [theirs, ours] =
      std::mismatch(file.tensors.begin(), file.tensors.end(), expected.begin(), expected.end(),
                    [](const StoredTensor& a, const StoredTensor& b) {
                      return a.name == b.name && a.dtype == b.dtype && a.shape == b.shape;
                    });
  if (theirs == file.tensors.end() && ours == expected.end()) return;
  require(false, subject + "does not hold the variables of its rows of table '" +
                     shown(table.name) + "': must hold " +
                     (ours == expected.end() ? "nothing more" : text_of(*ours)) + ", got " +
                     (theirs == file.tensors.end() ? "nothing" : text_of(*theirs)));
}

void check_file(const FileRecord& file, const Manifest& manifest) {
  const std::string subject = "file '" + file.name + "' ";
  require(is_safe_file_name(file.name), subject + "has a name that is no plain file name");
  check_extent(file, subject);
  if (file.kind == FileKind::kTable) {
    require(file.table < static_cast<std::int64_t>(manifest.tables.size()),
            subject + "belongs to no table");
    check_tensors(file, manifest.tables[file.table], subject);
  } else if (file.kind != FileKind::kTensors) {
    for (const StoredTensor& tensor : file.tensors)
      require(tensor.dtype == "U8" && tensor.shape.size() == 1,
              subject + "holds '" + tensor.name + "', which is not plain bytes");
  }
}

/// Checks that each row of the table is in exactly one file: adjoining blocks, or one residue class
/// each.
void check_rows(const SavedTable& table, std::vector<Progression> parts) {
  const std::string subject = "table '" + shown(table.name) + "': ";
  require(!parts.empty(), subject + "no file holds its rows");
  std::sort(parts.begin(), parts.end(),
            [](const Progression& a, const Progression& b) { return a.first < b.first; });
  const std::int64_t step = parts.front().step;
  const std::int64_t rows = table.vocabulary_size;
  std::int64_t next = 0;
  for (const Progression& part : parts) {
    require(part.step == step, subject + "its files do not have one row step");
    require(part.first == next && part.first < rows,
            subject + "rows from " + std::to_string(next) + " on are missing or stored twice");
    require(part.count >= 1 && (step == 1 ? part.count <= rows - part.first
                                          : part.count == (rows - part.first - 1) / step + 1),
            subject + "a file has a row count that does not fit");
    next += step == 1 ? part.count : 1;
  }
  require(next == (step == 1 ? rows : std::min(step, rows)),
          subject + "rows from " + std::to_string(next) + " on are missing");
}

void check_files(const Manifest& manifest) {
  std::set<std::string> names;
  std::set<FileKind> single;
  std::vector<std::vector<Progression>> rows(manifest.tables.size());
  for (const FileRecord& file : manifest.files) {
    require(names.insert(file.name).second, "file '" + file.name + "' is listed twice");
    check_file(file, manifest);
    if (file.kind == FileKind::kTable)
      rows[file.table].push_back(file.rows);
    else
      require(single.insert(file.kind).second, "file '" + file.name + "' is the second of a kind");
  }
  for (std::size_t i = 0; i < rows.size(); ++i) check_rows(manifest.tables[i], std::move(rows[i]));
}

}  // namespace

std::string variable_name(std::string_view table, std::string_view slot) {
  return std::string(table).append("/").append(slot);
}

std::vector<StoredTensor> table_tensors(const SavedTable& table, std::int64_t rows) {
  std::vector<StoredTensor> tensors = {
      {.name = table.name,
       .dtype = std::string(stored_dtype(table.row_type)),
       .shape = {rows, stored_columns(table.row_type, table.dim)}}};
  for (const SavedSlot& slot : table.slots) {
    std::vector<std::int64_t> shape = {rows};
    if (!slot.row_wise) shape.push_back(table.dim);
    tensors.push_back(
        {.name = variable_name(table.name, slot.name), .dtype = "F32", .shape = std::move(shape)});
  }
  return tensors;
}

void check_manifest(const Manifest& manifest, const std::filesystem::path& path) {
  try {
    check_names(manifest);
    check_features(manifest);
    check_files(manifest);
  } catch (const Broken& broken) {
    throw DataLoss(path.string() + ": cannot read: " + broken.what);
  }
}

void check_configuration(const Manifest& manifest) {
  try {
    check_names(manifest);
    check_features(manifest);
    for (const SavedTable& table : manifest.tables)
      require(table.dim <= TableConfig::kMaxDim, "table '" + table.name + "': dim must be 1.." +
                                                     std::to_string(TableConfig::kMaxDim) +
                                                     ", got " + std::to_string(table.dim));
  } catch (const Broken& broken) {
    throw ValueError(broken.what);
  }
}

void check_manifest_size(std::int64_t bytes) {
  if (bytes > kMaxManifestBytes)
    throw ValueError("cannot save: the manifest, which has the caller's JSON, would have " +
                     std::to_string(bytes) + " bytes, at most " +
                     std::to_string(kMaxManifestBytes) + " are read");
}

void check_savable(const Manifest& manifest) {
  const auto refuse = [](const std::string& why) { throw ValueError("cannot save: " + why); };
  if (manifest.step < 0 || manifest.step > kMostStep)
    refuse("step must be 0 to 2^62, got " + std::to_string(manifest.step));
  check_manifest_size(std::ssize(manifest.user_json));  // before copies are made
  if (!Json::accept(manifest.user_json)) refuse("user_json is not one JSON value in UTF-8");
  std::int64_t text_bytes = 0;
  try {
    check_configuration(manifest);
    text_bytes = std::ssize(to_text(manifest));
  } catch (const ValueError& error) {
    refuse(error.what());
  } catch (const Json::exception& error) {
    refuse(std::string("a text is not UTF-8: ") + error.what());
  }
  check_manifest_size(text_bytes);
}

}  // namespace embertable::checkpoint
