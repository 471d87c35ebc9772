#include "apps/jobs/run/describe.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "checkpoint/manifest_check.h"
#include "checkpoint/reader.h"
#include "embertable/errors.h"

namespace embertable::jobs {
namespace {

const char* name_of(checkpoint::FileKind kind) {
  switch (kind) {
    case checkpoint::FileKind::kTable:
      return "table";
    case checkpoint::FileKind::kTensors:
      return "tensors";
    case checkpoint::FileKind::kBlobs:
      return "blobs";
    case checkpoint::FileKind::kIdMaps:
      return "id_maps";
  }
  return "";
}

Json describe(const checkpoint::StoredTensor& tensor) {
  return {{"name", tensor.name},
          {"dtype", tensor.dtype},
          {"shape", tensor.shape},
          {"bytes", checkpoint::tensor_bytes(tensor.dtype, tensor.shape)}};
}

Json describe(const checkpoint::SavedTable& table) {
  Json json = {{"name", table.name},         {"rows", table.vocabulary_size},
               {"dim", table.dim},           {"row_type", to_string(table.row_type)},
               {"combiner", table.combiner}, {"initializer", table.initializer}};
  json["optimizer"] = table.optimizer ? Json(table.optimizer->text) : Json();
  json["variables"] = Json::array();
  for (const checkpoint::StoredTensor& tensor : table_tensors(table, table.vocabulary_size))
    json["variables"].push_back(describe(tensor));
  return json;
}

Json describe(const checkpoint::SavedFeature& feature, const checkpoint::Manifest& manifest) {
  Json json = {{"path", feature.path}, {"table", manifest.tables[feature.table].name}};
  if (feature.name) json["name"] = *feature.name;
  if (feature.output_shape) json["output_shape"] = *feature.output_shape;
  if (feature.max_sequence_length > 0) json["max_sequence_length"] = feature.max_sequence_length;
  return json;
}

/// Describes the files, and the contents of those that hold no rows.
void describe_files(const checkpoint::Manifest& manifest, Json& json) {
  std::int64_t bytes = 0;
  for (const char* key : {"files", "id_maps", "tensors", "blobs"}) json[key] = Json::array();
  for (const checkpoint::FileRecord& file : manifest.files) {
    bytes += file.bytes;
    json["files"].push_back({{"name", file.name},
                             {"kind", name_of(file.kind)},
                             {"bytes", file.bytes},
                             {"blocks", file.num_blocks()}});
    if (file.kind == checkpoint::FileKind::kTable) continue;
    for (const checkpoint::StoredTensor& tensor : file.tensors)
      json[name_of(file.kind)].push_back(describe(tensor));
  }
  json["bytes"] = bytes;
}

/// Returns JSON without the blanks between its texts.
std::string without_blanks(std::string_view json) {
  std::string text;
  bool in_text = false;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (!in_text && (c == ' ' || c == '\t' || c == '\r' || c == '\n')) continue;
    text += c;
    if (c == '"') in_text = !in_text;
    if (c == '\\' && i + 1 < json.size()) text += json[++i];
  }
  return text;
}

std::string on_one_line(const std::string& json, const std::filesystem::path& path) {
  try {
    return checkpoint::parse_json(json, path).dump(-1, ' ', false, Json::error_handler_t::replace);
  } catch (const DataLoss&) {
    if (!Json::accept(json)) throw;
    return without_blanks(json);
  }
}

}  // namespace

std::string Description::text() const {
  std::string all = own.dump(-1, ' ', false, Json::error_handler_t::replace);
  all.pop_back();
  return all + ",\"user\":" + user + "}";
}

Description describe_checkpoint(const std::filesystem::path& path) {
  const checkpoint::Reader reader(checkpoint::local_files(), path);
  const checkpoint::Manifest& manifest = reader.manifest();
  Json json = {{"directory", reader.directory().string()},
               {"skipped", reader.skipped()},
               {"step", manifest.step},
               {"library", manifest.library},
               {"numerics_version", manifest.numerics_version},
               {"seed", manifest.seed},
               {"pipeline_execution", manifest.pipeline_execution},
               {"hosts", manifest.topology.hosts},
               {"replicas_per_host", manifest.topology.replicas_per_host},
               {"sharding", manifest.topology.sharding == Sharding::kDiv ? "div" : "mod"},
               {"bytes", 0}};
  json["tables"] = Json::array();
  for (const checkpoint::SavedTable& table : manifest.tables)
    json["tables"].push_back(describe(table));
  json["features"] = Json::array();
  for (const checkpoint::SavedFeature& feature : manifest.features)
    json["features"].push_back(describe(feature, manifest));
  describe_files(manifest, json);
  return {.own = std::move(json), .user = on_one_line(manifest.user_json, reader.directory())};
}

}  // namespace embertable::jobs
