#include "jobs/model_saver.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "jobs/csv_reader.h"

namespace embertable::jobs {
namespace {

/// A JSON list of the names by row.
std::string read_names(const NamesSpec& spec, const IdMap& keys, const std::string& data_root) {
  const std::string columns[] = {spec.key, spec.name};
  CsvReader reader(paths_in(data_root, spec.file.paths), spec.file.format, columns);
  nlohmann::json names = nlohmann::json::array();
  for (std::int64_t i = 0; i < keys.num_keys(); ++i) names.push_back(nullptr);
  while (reader.next()) {
    const std::optional<std::int64_t> row =
        keys.kind() == KeyKind::kInteger ? keys.find(reader.integer(0)) : keys.find(reader.text(0));
    if (row) names[static_cast<std::size_t>(*row)] = reader.text(1);
  }
  return names.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

ModelSaver::ModelSaver(const Job& job, const Model& model, const std::string& data_root)
    : job_(job), model_(model), digests_(model.data_digests()) {
  blobs_["job.toml"] = job.text;
  for (const KeySpace& space : model.key_spaces()) id_maps_.emplace(space.name, space.keys);
  for (const NamesSpec& spec : job.names)
    blobs_["names." + spec.ids] = read_names(spec, id_maps_.at(spec.ids), data_root);
}

std::filesystem::path ModelSaver::save(CheckpointRun& run, const Embedding& engine,
                                       const Progress& progress) const {
  CallerState caller;
  caller.json = run_state(job_, progress, digests_).dump();
  caller.blobs = blobs_;
  for (const auto& [feature, tensor] : progress.looked_up)
    caller.tensors["looked_up." + feature] = tensor;
  model_.save(engine, caller);
  return engine.save(run, caller, id_maps_);
}

}  // namespace embertable::jobs
