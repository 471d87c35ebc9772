#include "checkpoint/safetensors.h"

#include <algorithm>
#include <array>
#include <limits>
#include <set>
#include <utility>

#include "base/bytes.h"
#include "checkpoint/json_text.h"
#include "embertable/errors.h"

namespace embertable::checkpoint {
namespace {

constexpr std::int64_t kLengthBytes = 8;
constexpr std::int64_t kMaxBytes = std::numeric_limits<std::int64_t>::max();

StoredTensor parse_tensor(const std::string& name, const JsonField& field,
                          std::int64_t data_offset) {
  StoredTensor tensor{.name = name, .dtype = field["dtype"].text()};
  const JsonField shape = field["shape"];
  for (std::size_t axis = 0; axis < shape.size(); ++axis)
    tensor.shape.push_back(shape.at(axis).integer(0, kMaxBytes));
  const JsonField range = field["data_offsets"];
  if (range.size() != 2) range.refuse("must be two numbers");
  const std::int64_t begin = range.at(0).integer(0, kMaxBytes - data_offset);
  const std::int64_t end = range.at(1).integer(begin, kMaxBytes - data_offset);
  tensor.offset = data_offset + begin;
  tensor.bytes = end - begin;
  if (item_bytes(tensor.dtype) == 0) field["dtype"].refuse("is unknown: '" + tensor.dtype + "'");
  if (tensor.bytes != tensor_bytes(tensor.dtype, tensor.shape))
    field.refuse("has " + std::to_string(tensor.bytes) + " bytes, which its shape contradicts");
  return tensor;
}

}  // namespace

std::int64_t item_bytes(std::string_view dtype) noexcept {
  constexpr std::array<std::pair<std::string_view, std::int64_t>, 15> kItems = {{{"BOOL", 1},
                                                                                 {"U8", 1},
                                                                                 {"I8", 1},
                                                                                 {"F8_E5M2", 1},
                                                                                 {"F8_E4M3", 1},
                                                                                 {"I16", 2},
                                                                                 {"U16", 2},
                                                                                 {"F16", 2},
                                                                                 {"BF16", 2},
                                                                                 {"I32", 4},
                                                                                 {"U32", 4},
                                                                                 {"F32", 4},
                                                                                 {"I64", 8},
                                                                                 {"U64", 8},
                                                                                 {"F64", 8}}};
  for (const auto& [name, bytes] : kItems)
    if (name == dtype) return bytes;
  return 0;
}

std::int64_t tensor_bytes(std::string_view dtype, const std::vector<std::int64_t>& shape) noexcept {
  std::int64_t bytes = item_bytes(dtype);
  if (bytes == 0) return -1;
  for (const std::int64_t dim : shape)
    if (dim < 0 || __builtin_mul_overflow(bytes, dim, &bytes)) return -1;
  return bytes;
}

std::string format_safetensors(SafetensorsHeader& header) {
  Json json = Json::object();
  if (!header.metadata.empty()) json[std::string(kSafetensorsMetadata)] = header.metadata;
  std::set<std::string_view> names = {kSafetensorsMetadata};
  std::int64_t end = 0;
  for (StoredTensor& tensor : header.tensors) {
    if (!names.insert(tensor.name).second)
      throw ValueError("tensor '" + tensor.name + "' cannot be saved: the name is taken");
    tensor.bytes = tensor_bytes(tensor.dtype, tensor.shape);
    tensor.offset = std::exchange(end, end + tensor.bytes);
    json[tensor.name] = {
        {"dtype", tensor.dtype}, {"shape", tensor.shape}, {"data_offsets", {tensor.offset, end}}};
  }
  std::string text;
  try {
    text = json.dump();
  } catch (const Json::exception& error) {
    throw ValueError("tensors cannot be saved: a name is not UTF-8 (" + std::string(error.what()) +
                     ")");
  }
  const auto used = static_cast<std::int64_t>(text.size()) + kLengthBytes;
  header.data_offset = (used + kDataAlignment - 1) / kDataAlignment * kDataAlignment;
  if (header.data_offset - kLengthBytes > kMaxSafetensorsHeader)
    throw ValueError("tensors cannot be saved: their header would have " +
                     std::to_string(header.data_offset - kLengthBytes) + " bytes, at most " +
                     std::to_string(kMaxSafetensorsHeader) + " are read");
  text.resize(header.data_offset - kLengthBytes, ' ');
  for (StoredTensor& tensor : header.tensors) tensor.offset += header.data_offset;
  std::string bytes;
  append_little_endian(std::uint64_t{text.size()}, bytes);
  return bytes + text;
}

std::int64_t safetensors_header_bytes(std::string_view text, std::int64_t file_bytes,
                                      const std::filesystem::path& path) {
  if (file_bytes < kLengthBytes || text.size() < static_cast<std::size_t>(kLengthBytes))
    throw DataLoss(path.string() + ": cannot parse: too short for a header");
  const auto length = load_little_endian<std::uint64_t>(text.data());
  const std::int64_t limit = std::min(kMaxSafetensorsHeader, file_bytes - kLengthBytes);
  if (length > static_cast<std::uint64_t>(limit))
    throw DataLoss(path.string() + ": cannot parse: a header of " + std::to_string(length) +
                   " bytes, at most " + std::to_string(limit) + " fit");
  return kLengthBytes + static_cast<std::int64_t>(length);
}

SafetensorsHeader parse_safetensors(std::string_view text, std::int64_t file_bytes,
                                    const std::filesystem::path& path) {
  SafetensorsHeader header;
  header.data_offset = safetensors_header_bytes(text, file_bytes, path);
  if (static_cast<std::int64_t>(text.size()) < header.data_offset)
    throw DataLoss(path.string() + ": cannot parse: the header is cut short");
  const Json json = parse_json(text.substr(kLengthBytes, header.data_offset - kLengthBytes), path);
  if (!json.is_object()) JsonField(json, path, "").refuse("must be an object");
  for (const auto& [name, value] : json.items()) {
    const JsonField field(value, path, "tensor '" + name + "'");
    if (name != kSafetensorsMetadata) {
      header.tensors.push_back(parse_tensor(name, field, header.data_offset));
      continue;
    }
    if (!value.is_object()) field.refuse("must be an object");
    for (const auto& [key, entry] : value.items())
      header.metadata[key] = JsonField(entry, path, "metadata '" + key + "'").text();
  }
  std::stable_sort(header.tensors.begin(), header.tensors.end(),
                   [](const StoredTensor& a, const StoredTensor& b) {
                     return std::pair(a.offset, a.bytes) < std::pair(b.offset, b.bytes);
                   });
  std::int64_t end = header.data_offset;
  for (const StoredTensor& tensor : header.tensors) {
    if (tensor.offset != end)
      throw DataLoss(path.string() + ": tensor '" + tensor.name + "' starts at byte " +
                     std::to_string(tensor.offset) + ", the one before ends at " +
                     std::to_string(end));
    end += tensor.bytes;
  }
  if (end != file_bytes)
    throw DataLoss(path.string() + ": tensors end at byte " + std::to_string(end) +
                   ", the file at " + std::to_string(file_bytes));
  return header;
}

}  // namespace embertable::checkpoint
