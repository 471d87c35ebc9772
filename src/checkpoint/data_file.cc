#include "checkpoint/data_file.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/assert.h"
#include "checkpoint/manifest_check.h"
#include "checkpoint/stored_rows.h"
#include "checkpoint/summed_file.h"
#include "embertable/config.h"
#include "embertable/errors.h"
#include "embertable/executor.h"

namespace embertable::checkpoint {
namespace {

static_assert(std::endian::native == std::endian::little, "files hold what memory holds");

std::string five_digits(std::int64_t value) {
  const std::string digits = std::to_string(value);
  return std::string(digits.size() < 5 ? 5 - digits.size() : 0, '0') + digits;
}

std::map<std::string, std::string> common_metadata(std::int64_t step) {
  return {{"embertable.format", std::string(kFormatName) + " " + std::to_string(kFormatVersion)},
          {"embertable.step", std::to_string(step)}};
}

/// Returns metadata with which a file of a table can be read without the manifest.
std::map<std::string, std::string> table_metadata(const Manifest& manifest, const SavedTable& table,
                                                  std::int32_t host, const Progression& rows) {
  auto metadata = common_metadata(manifest.step);
  metadata["embertable.table"] = table.name;
  metadata["embertable.vocabulary_size"] = std::to_string(table.vocabulary_size);
  metadata["embertable.shard"] = std::to_string(host);
  metadata["embertable.shards"] = std::to_string(manifest.topology.hosts);
  metadata["embertable.first_row"] = std::to_string(rows.first);
  metadata["embertable.row_step"] = std::to_string(rows.step);
  return metadata;
}

static_assert(TableConfig::kMaxDim * sizeof(float) + kScaleBytes <= PipedFile::kChunkBytes);

/// Streams one variable, as many rows at once as a chunk holds, which is at least one.
void write_rows(SummedFile& file, const FillRows& fill, std::int64_t rows, std::int64_t width,
                RowType type) {
  const std::int64_t row_bytes = stored_row_bytes(type, width);
  const auto at_once = static_cast<std::int64_t>(PipedFile::kChunkBytes) / row_bytes;
  std::vector<float> floats;
  for (std::int64_t first = 0; first < rows; first += at_once) {
    const std::int64_t count = std::min(at_once, rows - first);
    const std::span<std::byte> chunk = file.chunk();
    if (type == RowType::kFloat32) {
      fill(first,
           {reinterpret_cast<float*>(chunk.data()), static_cast<std::size_t>(count * width)});
    } else {
      floats.resize(count * width);
      fill(first, floats);
      store_rows(type, width, floats, chunk.data());
    }
    file.send(chunk, static_cast<std::size_t>(count * row_bytes));
  }
}

FileRecord write_contents(Directory& directory, const std::string& name, FileKind kind,
                          SafetensorsHeader header, FunctionRef<void(SummedFile& file)> write) {
  const std::string prefix = format_safetensors(header);
  SummedFile file(directory.create(name));
  file.write(bytes_of(prefix));
  write(file);
  FileRecord record = file.finish();
  record.name = name;
  record.kind = kind;
  record.tensors = std::move(header.tensors);
  return record;
}

}  // namespace

std::string table_file_name(std::int64_t table, const std::string& name, std::int32_t shard,
                            std::int32_t shards) {
  constexpr std::size_t kMaxShown = 64;
  std::string shown = name.substr(0, kMaxShown);
  for (char& c : shown) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '_' || c == '-' || c == '.';
    if (!plain) c = '_';
  }
  return "t" + five_digits(table) + "-" + shown + "-" + five_digits(shard) + "-of-" +
         five_digits(shards) + ".safetensors";
}

FileRecord write_table_file(Directory& directory, const Manifest& manifest, std::int64_t table,
                            std::int32_t host, const Progression& rows, const RowSource& source) {
  const SavedTable& saved = manifest.tables[table];
  EMBERTABLE_ASSERT(source.rows == rows.count && source.fill.size() == 1 + saved.slots.size());
  SafetensorsHeader header{.metadata = table_metadata(manifest, saved, host, rows),
                           .tensors = table_tensors(saved, rows.count)};
  FileRecord record =
      write_contents(directory, table_file_name(table, saved.name, host, manifest.topology.hosts),
                     FileKind::kTable, std::move(header), [&](SummedFile& file) {
                       for (std::size_t i = 0; i < source.fill.size(); ++i) {
                         const bool row_wise = i > 0 && saved.slots[i - 1].row_wise;
                         write_rows(file, source.fill[i], rows.count, row_wise ? 1 : saved.dim,
                                    i == 0 ? saved.row_type : RowType::kFloat32);
                       }
                     });
  record.table = table;
  record.shard = host;
  record.shards = manifest.topology.hosts;
  record.rows = rows;
  return record;
}

TensorSource source_of(const std::string& name, const DenseTensor& tensor) {
  if (std::ssize(tensor.shape) > Shape::kMaxRank)
    throw ValueError("tensor '" + name + "': must have " + std::to_string(Shape::kMaxRank) +
                     " axes or fewer, got " + std::to_string(tensor.shape.size()));
  if (static_cast<std::int64_t>(tensor.bytes.size()) != tensor_bytes(tensor.dtype, tensor.shape))
    throw ValueError("tensor '" + name + "': its dtype '" + tensor.dtype +
                     "' and shape do not give the " + std::to_string(tensor.bytes.size()) +
                     " bytes that it has");
  return {tensor.dtype, tensor.shape,
          [&tensor](const WriteBytes& write) { write(bytes_of(tensor.bytes)); }};
}

FileRecord write_tensors_file(Directory& directory, std::int64_t step,
                              const std::map<std::string, TensorSource>& tensors) {
  std::vector<const std::pair<const std::string, TensorSource>*> order;
  for (const auto& entry : tensors) order.push_back(&entry);
  // Wide elements first, so that every tensor starts at a multiple of its element.
  std::stable_sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
    return item_bytes(a->second.dtype) > item_bytes(b->second.dtype);
  });
  SafetensorsHeader header{.metadata = common_metadata(step)};
  for (const auto* entry : order)
    header.tensors.push_back(
        {.name = entry->first, .dtype = entry->second.dtype, .shape = entry->second.shape});
  return write_contents(directory, "tensors.safetensors", FileKind::kTensors, std::move(header),
                        [&](SummedFile& file) {
                          const auto write = [&](std::span<const std::byte> bytes) {
                            file.write(bytes);
                          };
                          for (const auto* entry : order) entry->second.write(write);
                        });
}

FileRecord write_bytes_file(Directory& directory, std::int64_t step, FileKind kind,
                            const std::map<std::string, std::string>& entries) {
  SafetensorsHeader header{.metadata = common_metadata(step)};
  for (const auto& [name, bytes] : entries)
    header.tensors.push_back(
        {.name = name, .dtype = "U8", .shape = {static_cast<std::int64_t>(bytes.size())}});
  return write_contents(directory,
                        kind == FileKind::kIdMaps ? "id_maps.safetensors" : "blobs.safetensors",
                        kind, std::move(header), [&](SummedFile& file) {
                          for (const auto& entry : entries) file.write(bytes_of(entry.second));
                        });
}

}  // namespace embertable::checkpoint
