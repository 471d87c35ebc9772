#include "apps/jobs/run/model_saver.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "apps/jobs/data/data_cache.h"
#include "apps/jobs/text/csv_reader.h"
#include "base/hash.h"

namespace embertable::jobs {
namespace {

struct Names {
  std::string json;  ///< a list by row
  LeftOut left_out;
};

Names read_file(const NamesSpec& spec, const IdMap& keys, const DataOptions& options) {
  const std::string columns[] = {spec.key, spec.name};
  CsvReader reader(paths_in(options.root, spec.file.paths), spec.file.format, columns,
                   options.skip_bad.most());
  nlohmann::json names = nlohmann::json::array();
  for (std::int64_t i = 0; i < keys.num_keys(); ++i) names.push_back(nullptr);
  while (reader.next()) {
    try {
      const std::optional<std::int64_t> row = keys.kind() == KeyKind::kInteger
                                                  ? keys.find(reader.integer(0))
                                                  : keys.find(reader.text(0));
      if (row) names[*row] = reader.text(1);
    } catch (const BrokenRecord&) {
      reader.leave_out();
    }
  }
  return {names.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace), reader.left_out()};
}

Names read_names(const NamesSpec& spec, const IdMap& keys, const DataOptions& options) {
  const std::string bytes = keys.to_bytes();
  const DataCache cache(
      options.cache, "names." + spec.ids,
      fmt::format("{} {:?} {:?} {} {}\n{}", describe(spec.file.format), spec.key, spec.name,
                  options.skip_bad.text(), hash_hex(std::as_bytes(std::span(bytes))),
                  file_stamps(paths_in(options.root, spec.file.paths))));
  return cache.get<Names>([&] { return read_file(spec, keys, options); },
                          [](auto& file, Names& names) {
                            file(names.json);
                            names.left_out.fields(file);
                          },
                          [&](const Names& names) {
                            const auto list = nlohmann::json::parse(names.json, nullptr, false);
                            return list.is_array() && std::ssize(list) == keys.num_keys();
                          });
}

}  // namespace

ModelSaver::ModelSaver(const Job& job, const Model& model, const DataOptions& options)
    : job_(job), model_(model), read_(options), digests_(model.data_digests()) {
  DataOptions rest = options;
  rest.skip_bad = options.skip_bad.after(model.left_out());
  blobs_["job.toml"] = job.text;
  for (const KeySpace& space : model.key_spaces()) id_maps_.emplace(space.name, space.keys);
  for (const NamesSpec& spec : job.names) {
    Names names = read_names(spec, id_maps_.at(spec.ids), rest);
    left_out_ += names.left_out;
    rest.skip_bad = rest.skip_bad.after(names.left_out);
    blobs_["names." + spec.ids] = std::move(names.json);
  }
}

std::filesystem::path ModelSaver::save(CheckpointRun& run, const Embedding& engine,
                                       const Progress& progress) const {
  CallerState caller;
  caller.json = run_state(job_, progress, digests_, read_)
                    .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  caller.blobs = blobs_;
  for (const auto& [feature, tensor] : progress.looked_up)
    caller.tensors["looked_up." + feature] = tensor;
  model_.save(engine, caller);
  return engine.save(run, caller, id_maps_);
}

}  // namespace embertable::jobs
