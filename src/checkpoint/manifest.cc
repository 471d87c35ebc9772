#include "checkpoint/manifest.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/float_environment.h"
#include "base/hash.h"
#include "base/step_number.h"
#include "checkpoint/file.h"
#include "checkpoint/json_text.h"
#include "checkpoint/manifest_check.h"
#include "embertable/errors.h"

namespace embertable::checkpoint {
namespace {

constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kMax32 = std::numeric_limits<std::int32_t>::max();

/// Blocks start at a multiple of it, as the rows of a table do: no border cuts a number of a row.
constexpr std::int64_t kElementBytes = 8;

constexpr std::array<const char*, 4> kKinds = {"table", "tensors", "blobs", "id_maps"};
constexpr std::array<const char*, 3> kRowTypes = {"float32", "bfloat16", "int8"};
constexpr std::array<const char*, 2> kShardings = {"div", "mod"};

// The last bytes of a manifest: kSumBegin, 32 digits, kSumEnd. The sum is over all bytes before
// kSumBegin.
constexpr std::string_view kSumBegin = "\"checksum\": \"";
constexpr std::string_view kSumEnd = "\"\n}\n";
constexpr std::size_t kSumDigits = 32;

Json to_value(const StoredTensor& tensor) {
  return {{"name", tensor.name},
          {"dtype", tensor.dtype},
          {"shape", tensor.shape},
          {"offset", tensor.offset},
          {"bytes", tensor.bytes}};
}

Json to_value(const FileRecord& file) {
  Json json = {{"name", file.name}, {"kind", kKinds[static_cast<std::size_t>(file.kind)]}};
  if (file.kind == FileKind::kTable) {
    json["table"] = file.table;
    json["shard"] = file.shard;
    json["shards"] = file.shards;
    json["rows"] = {
        {"first", file.rows.first}, {"step", file.rows.step}, {"count", file.rows.count}};
  }
  json["bytes"] = file.bytes;
  json["tensors"] = Json::array();
  for (const StoredTensor& tensor : file.tensors) json["tensors"].push_back(to_value(tensor));
  json["xxh128"] = file.xxh128;
  json["block_bytes"] = file.block_bytes;
  json["blocks_xxh128"] = file.blocks_xxh128;
  return json;
}

Json to_value(const SavedOptimizer& optimizer) {
  Json parameters = Json::object();
  for (const auto& [name, value] : optimizer.parameters) parameters[name] = number_to_json(value);
  return {{"rule", optimizer.rule},
          {"text", optimizer.text},
          {"learning_rate",
           optimizer.learning_rate ? number_to_json(*optimizer.learning_rate) : Json()},
          {"parameters", std::move(parameters)}};
}

Json to_value(const QuantizationConfig& quantization) {
  return {{"num_buckets", quantization.num_buckets},
          {"lower", number_to_json(quantization.lower)},
          {"upper", number_to_json(quantization.upper)}};
}

Json to_value(const SavedTable& table) {
  Json slots = Json::array();
  for (const SavedSlot& slot : table.slots)
    slots.push_back({{"name", slot.name}, {"row_wise", slot.row_wise}});
  Json json = {{"name", table.name},
               {"vocabulary_size", table.vocabulary_size},
               {"dim", table.dim},
               {"combiner", table.combiner},
               {"initializer", table.initializer},
               {"optimizer", table.optimizer ? to_value(*table.optimizer) : Json()},
               {"slots", std::move(slots)}};
  if (table.quantization) json["quantization"] = to_value(*table.quantization);
  if (table.row_type != RowType::kFloat32) json["row_type"] = to_string(table.row_type);
  return json;
}

Json to_value(const SavedFeature& feature) {
  return {{"path", feature.path},
          {"name", feature.name ? Json(*feature.name) : Json()},
          {"table", feature.table},
          {"max_sequence_length", feature.max_sequence_length},
          {"validate_weights_and_indices", feature.validate_weights_and_indices},
          {"output_shape", feature.output_shape ? Json(*feature.output_shape) : Json()},
          {"id_map", feature.id_map ? Json(*feature.id_map) : Json()}};
}

Json to_value(const Manifest& manifest) {
  Json json = {
      {"format", kFormatName},
      {"version", kFormatVersion},
      {"library", manifest.library},
      {"numerics_version", manifest.numerics_version},
      {"step", manifest.step},
      {"topology",
       {{"hosts", manifest.topology.hosts},
        {"replicas_per_host", manifest.topology.replicas_per_host},
        {"sharding", kShardings[static_cast<std::size_t>(manifest.topology.sharding)]}}},
      {"engine", {{"seed", manifest.seed}, {"pipeline_execution", manifest.pipeline_execution}}},
  };
  for (const char* list : {"tables", "features", "files"}) json[list] = Json::array();
  for (const SavedTable& table : manifest.tables) json["tables"].push_back(to_value(table));
  for (const SavedFeature& feature : manifest.features)
    json["features"].push_back(to_value(feature));
  for (const FileRecord& file : manifest.files) json["files"].push_back(to_value(file));
  json["user_json"] = manifest.user_json;
  return json;
}

void add_lines(const Json& value, const std::string& path, std::string& lines) {
  if (!value.is_structured() || value.empty()) {
    lines += path + " = " + value.dump() + "\n";
    return;
  }
  for (const auto& [key, part] : value.items())
    add_lines(part, path.empty() ? key : path + "." + key, lines);
}

/// Returns one of `names`, by position.
template <std::size_t kCount>
std::size_t choice(const JsonField& field, const std::array<const char*, kCount>& names) {
  const auto found = std::find(names.begin(), names.end(), field.text());
  if (found == names.end()) field.refuse("is unknown: '" + field.text() + "'");
  return static_cast<std::size_t>(found - names.begin());
}

StoredTensor tensor_from(const JsonField& field) {
  StoredTensor tensor{.name = field["name"].text(), .dtype = field["dtype"].text()};
  const JsonField shape = field["shape"];
  for (std::size_t axis = 0; axis < shape.size(); ++axis)
    tensor.shape.push_back(shape.at(axis).integer(0, kMax));
  tensor.offset = field["offset"].integer(0, kMax);
  tensor.bytes = field["bytes"].integer(0, kMax - tensor.offset);
  return tensor;
}

FileRecord file_from(const JsonField& field) {
  FileRecord file{.name = field["name"].text()};
  file.kind = static_cast<FileKind>(choice(field["kind"], kKinds));
  if (file.kind == FileKind::kTable) {
    file.table = field["table"].integer(0, kMax);
    file.shards = static_cast<std::int32_t>(field["shards"].integer(1, kMax32));
    file.shard = static_cast<std::int32_t>(field["shard"].integer(0, file.shards - 1));
    const JsonField rows = field["rows"];
    file.rows = {rows["first"].integer(0, kMax), rows["step"].integer(1, kMax32),
                 rows["count"].integer(0, kMax)};
  }
  file.bytes = field["bytes"].integer(0, kMax);
  const JsonField tensors = field["tensors"];
  for (std::size_t i = 0; i < tensors.size(); ++i)
    file.tensors.push_back(tensor_from(tensors.at(i)));
  file.xxh128 = field["xxh128"].hex(32);
  file.block_bytes = field["block_bytes"].integer(kDataAlignment, 64 << 20);
  if (file.block_bytes % kElementBytes != 0) field["block_bytes"].refuse("must be a multiple of 8");
  const std::int64_t blocks = file.bytes / file.block_bytes + (file.bytes % file.block_bytes != 0);
  file.blocks_xxh128 = field["blocks_xxh128"].hex(static_cast<std::size_t>(blocks) * 32);
  return file;
}

SavedOptimizer optimizer_from(const JsonField& field) {
  SavedOptimizer optimizer{.rule = field["rule"].text(), .text = field["text"].text()};
  if (field.has("learning_rate")) optimizer.learning_rate = field["learning_rate"].number();
  field["parameters"].each([&](const std::string& name, const JsonField& value) {
    optimizer.parameters.emplace_back(name, value.number());
  });
  return optimizer;
}

QuantizationConfig quantization_from(const JsonField& field) {
  const FloatEnvironment ours;
  const QuantizationConfig quantization = {
      .num_buckets = static_cast<std::int32_t>(field["num_buckets"].integer(2, kMax32)),
      .lower = static_cast<float>(field["lower"].number()),
      .upper = static_cast<float>(field["upper"].number())};
  const float width = quantization.upper - quantization.lower;
  if (!(width > 0) || !std::isfinite(width)) field.refuse("must have a lower less than its upper");
  if (!(width / static_cast<float>(quantization.num_buckets - 1) > 0))
    field.refuse("must have (upper - lower) / (num_buckets - 1) above 0");
  return quantization;
}

SavedTable table_from(const JsonField& field) {
  SavedTable table{.name = field["name"].text(),
                   .vocabulary_size = field["vocabulary_size"].integer(1, kMax),
                   .dim = static_cast<std::int32_t>(field["dim"].integer(1, kMax32)),
                   .combiner = field["combiner"].text(),
                   .initializer = field["initializer"].text()};
  if (field.has("optimizer")) table.optimizer = optimizer_from(field["optimizer"]);
  if (field.has("row_type"))
    table.row_type = static_cast<RowType>(choice(field["row_type"], kRowTypes));
  if (field.has("quantization")) table.quantization = quantization_from(field["quantization"]);
  const JsonField slots = field["slots"];
  for (std::size_t i = 0; i < slots.size(); ++i)
    table.slots.push_back({slots.at(i)["name"].text(), slots.at(i)["row_wise"].boolean()});
  return table;
}

SavedFeature feature_from(const JsonField& field) {
  SavedFeature feature{.path = field["path"].text()};
  if (field.has("name")) feature.name = field["name"].text();
  feature.table = field["table"].integer(0, kMax);
  feature.max_sequence_length = field["max_sequence_length"].integer(0, kMax);
  feature.validate_weights_and_indices = field["validate_weights_and_indices"].boolean();
  if (field.has("output_shape")) {
    const JsonField shape = field["output_shape"];
    feature.output_shape.emplace();
    for (std::size_t axis = 0; axis < shape.size(); ++axis)
      feature.output_shape->push_back(shape.at(axis).integer(-1, kMax));
  }
  if (field.has("id_map")) feature.id_map = field["id_map"].text();
  return feature;
}

Manifest manifest_from(const JsonField& field) {
  Manifest manifest{.library = field["library"].text(),
                    .numerics_version = field["numerics_version"].integer(0, kMax),
                    .step = field["step"].integer(0, kMostStep)};
  const JsonField topology = field["topology"];
  manifest.topology = {.hosts = static_cast<std::int32_t>(topology["hosts"].integer(1, kMax32)),
                       .replicas_per_host = static_cast<std::int32_t>(
                           topology["replicas_per_host"].integer(1, kMax32)),
                       .sharding = static_cast<Sharding>(choice(topology["sharding"], kShardings))};
  manifest.seed = field["engine"]["seed"].unsigned_integer();
  manifest.pipeline_execution = field["engine"]["pipeline_execution"].boolean();
  const JsonField tables = field["tables"], features = field["features"], files = field["files"];
  for (std::size_t i = 0; i < tables.size(); ++i)
    manifest.tables.push_back(table_from(tables.at(i)));
  for (std::size_t i = 0; i < features.size(); ++i)
    manifest.features.push_back(feature_from(features.at(i)));
  for (std::size_t i = 0; i < files.size(); ++i) manifest.files.push_back(file_from(files.at(i)));
  manifest.user_json = field["user_json"].text();
  return manifest;
}

/// Returns the text without its checksum, which is checked.
std::string_view checked_body(std::string_view text, const std::filesystem::path& path) {
  constexpr std::size_t kTail = kSumBegin.size() + kSumDigits + kSumEnd.size();
  if (text.size() < kTail || text.substr(text.size() - kTail, kSumBegin.size()) != kSumBegin ||
      !text.ends_with(kSumEnd))
    throw DataLoss(path.string() + ": cannot read: it does not end with its checksum");
  const std::string_view body = text.substr(0, text.size() - kTail);
  if (hash_hex(std::as_bytes(std::span(body.data(), body.size()))) !=
      text.substr(body.size() + kSumBegin.size(), kSumDigits))
    throw DataLoss(path.string() + ": cannot read: its checksum does not match its contents");
  return body;
}

}  // namespace

std::string to_text(const Manifest& manifest) {
  std::string text = to_value(manifest).dump(1);
  text.resize(text.size() - 2);  // "\n}"
  text += ",\n ";
  const std::string sum = hash_hex(bytes_of(text));
  return text.append(kSumBegin).append(sum).append(kSumEnd);
}

std::string to_lines(const Manifest& manifest) {
  std::string lines;
  add_lines(to_value(manifest), "", lines);
  return lines;
}

Manifest parse_manifest(std::string_view text, const std::filesystem::path& path) {
  checked_body(text, path);
  const Json json = parse_json(text, path);
  const JsonField field(json, path, "");
  if (field["format"].text() != kFormatName)
    field["format"].refuse("must be '" + std::string(kFormatName) + "'");
  const std::int64_t version = field["version"].integer(1, kMax);
  if (version > kFormatVersion)
    throw IoError(path.string() + ": cannot read: format version " + std::to_string(version) +
                  " is newer than " + std::to_string(kFormatVersion) +
                  ", the newest that this library reads");
  Manifest manifest = manifest_from(field);
  check_manifest(manifest, path);
  return manifest;
}

std::string to_json(const FileRecord& file) { return to_value(file).dump(); }

FileRecord parse_file_record(std::string_view json) {
  const std::filesystem::path path = "file record";
  const Json value = parse_json(json, path);
  return file_from(JsonField(value, path, ""));
}

}  // namespace embertable::checkpoint
