#include "variable/saved_variable.h"

#include <algorithm>
#include <array>
#include <utility>

#include "embertable/errors.h"

namespace embertable::sharded {
namespace {

constexpr std::array<std::pair<DType, std::string_view>, 7> kStored = {{
    {DType::kFloat32, "F32"},
    {DType::kFloat64, "F64"},
    {DType::kInt32, "I32"},
    {DType::kInt64, "I64"},
    {DType::kBool, "BOOL"},
    {DType::kBFloat16, "BF16"},
    {DType::kFloat16, "F16"},
}};

/// Returns the shape of a table's rows, or of a slot, by the manifest.
std::optional<Shape> shape_in_tables(const checkpoint::Manifest& manifest, std::string_view name) {
  for (const checkpoint::SavedTable& table : manifest.tables) {
    if (table.name == name) return Shape({table.vocabulary_size, table.dim});
    for (const checkpoint::SavedSlot& slot : table.slots)
      if (checkpoint::variable_name(table.name, slot.name) == name)
        return slot.row_wise ? Shape({table.vocabulary_size})
                             : Shape({table.vocabulary_size, table.dim});
  }
  return std::nullopt;
}

}  // namespace

std::string_view stored_name(DType dtype) noexcept {
  return std::ranges::find(kStored, dtype, [](const auto& pair) { return pair.first; })->second;
}

std::optional<DType> dtype_of_stored(std::string_view name) noexcept {
  const auto* found =
      std::ranges::find(kStored, name, [](const auto& pair) { return pair.second; });
  if (found == kStored.end()) return std::nullopt;
  return found->first;
}

SavedTensor::SavedTensor(const checkpoint::Reader& reader, const std::string& name) {
  if (find_tensor(reader, name)) return;
  const auto shape = shape_in_tables(reader.manifest(), name);
  if (!shape)
    throw KeyError(reader.directory().string() + ": Key '" + name +
                   "' not found in checkpoint: there is no variable of this name");
  stored_dtype_ = "F32";
  shape_ = *shape;
  of_table_ = reader.variable(name);
}

bool SavedTensor::find_tensor(const checkpoint::Reader& reader, const std::string& name) {
  for (const checkpoint::FileRecord& record : reader.manifest().files) {
    if (record.kind != checkpoint::FileKind::kTensors) continue;
    for (const checkpoint::StoredTensor& tensor : record.tensors) {
      if (tensor.name != name) continue;
      if (std::ssize(tensor.shape) > Shape::kMaxRank)
        throw ValueError(reader.directory().string() + ": variable '" + name + "' has " +
                         std::to_string(tensor.shape.size()) + " axes, at most " +
                         std::to_string(Shape::kMaxRank) + " can be restored");
      stored_dtype_ = tensor.dtype;
      shape_ = Shape(std::span<const std::int64_t>(tensor.shape));
      offset_ = tensor.offset;
      file_.emplace(reader.blocks_of(record));
      return true;
    }
  }
  return false;
}

void SavedTensor::read(std::int64_t first, std::span<std::byte> out) {
  if (out.empty()) return;
  if (file_) {
    const std::int64_t element = checkpoint::item_bytes(stored_dtype_);
    return file_->read(offset_ + first * element, out);
  }
  const std::int64_t width = of_table_->width();  // a component has whole rows
  of_table_->read(first / width,
                  {reinterpret_cast<float*>(out.data()), out.size() / sizeof(float)});
}

}  // namespace embertable::sharded
