#include "apps/jobs/run/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <utility>

#include "apps/jobs/spec/saved_parts.h"
#include "checkpoint/id_maps.h"
#include "checkpoint/json_text.h"
#include "checkpoint/reader.h"
#include "embertable/errors.h"

namespace embertable::jobs {
namespace {

using checkpoint::JsonField;

/// Names of the tensors that hold Progress::looked_up.
constexpr std::string_view kLookedUp = "looked_up.";

/// Keys, or with a dot at the end sections, that do not affect results.
constexpr std::array<std::string_view, 6> kNeverShown = {
    "strategy.hosts", "strategy.sharding", "schedule.look_ahead",
    "checkpoint.",    "engine.",           "names."};

bool may_change(const Job& job, std::string_view key) {
  if (key == "schedule.epochs") return !job.schedule.linear_rate;
  if (key == "metrics")
    return job.schedule.patience == 0;  // otherwise the first metric decides when the run ends
  return std::any_of(kNeverShown.begin(), kNeverShown.end(), [&](std::string_view one) {
    return one.ends_with('.') ? key.starts_with(one) : key == one;
  });
}

std::string value_of(const Job& job, const std::string& key) {
  const auto found = job.settings.find(key);
  return found == job.settings.end() ? "nothing" : fmt::format("'{}'", found->second);
}

Progress read_progress(const JsonField& json) {
  Progress progress;
  progress.epochs = static_cast<std::int32_t>(
      json["epochs"].integer(0, std::numeric_limits<std::int32_t>::max()));
  progress.samples = json["samples"].integer(0, std::numeric_limits<std::int64_t>::max());
  progress.trained = json["trained"].integer(0, std::numeric_limits<std::int64_t>::max());
  progress.losses = json["losses"].number();
  progress.learning_rate = json["learning_rate"].number();
  progress.seconds = json["seconds"].number();
  progress.best_epoch = static_cast<std::int32_t>(
      json["best_epoch"].integer(0, std::numeric_limits<std::int32_t>::max()));
  progress.best = json["best"].number();
  return progress;
}

/// Checks that the progress in a saved run fits the run's job.
void check_progress(const SavedRun& saved, const JsonField& json) {
  if (saved.progress.samples % saved.job.schedule.batch != 0) {
    json.refuse(fmt::format("must be at the end of a batch of {}, got sample {}",
                            saved.job.schedule.batch, saved.progress.samples));
  }
}

}  // namespace

nlohmann::ordered_json run_state(const Job& job, const Progress& progress,
                                 const std::map<std::string, std::string>& data) {
  nlohmann::ordered_json state = {{"job", job.name}, {"model", job.model_kind}};
  for (const TableSpec& table : job.tables) state["ids"][table.name] = table.ids;
  state["progress"] = {{"epochs", progress.epochs},
                       {"samples", progress.samples},
                       {"trained", progress.trained},
                       {"losses", checkpoint::number_to_json(progress.losses)},
                       {"learning_rate", checkpoint::number_to_json(progress.learning_rate)},
                       {"seconds", progress.seconds},
                       {"best_epoch", progress.best_epoch},
                       {"best", checkpoint::number_to_json(progress.best)}};
  state["data"] = data;
  return state;
}

SavedRun read_saved_run(const std::filesystem::path& path) {
  SavedRun saved;
  const checkpoint::Reader reader(checkpoint::local_files(), path);
  saved.directory = reader.directory();
  saved.skipped = reader.skipped();
  CallerState state = reader.caller_state();
  const auto text = state.blobs.find("job.toml");
  const checkpoint::Json json = checkpoint::parse_json(state.json, saved.directory);
  if (text == state.blobs.end() || !json.is_object() || !json.contains("progress")) {
    throw ValueError(fmt::format(
        "'{}' must be what `embertable train --out` saved, got a checkpoint without a run",
        saved.directory.string()));
  }
  const JsonField root(json, saved.directory, "user");
  saved.step = reader.manifest().step;
  saved.job = parse_job(text->second, root["job"].text() + ".toml");
  saved.progress = read_progress(root["progress"]);
  check_progress(saved, root["progress"]);
  for (const auto& [name, digest] : root["data"].json().items())
    saved.data[name] = root["data"][name.c_str()].hex(32);
  for (auto tensor = state.tensors.begin(); tensor != state.tensors.end();) {
    if (!tensor->first.starts_with(kLookedUp)) {
      ++tensor;
      continue;
    }
    saved.progress.looked_up[tensor->first.substr(kLookedUp.size())] = std::move(tensor->second);
    tensor = state.tensors.erase(tensor);
  }
  saved.state = std::move(state);
  saved.ids = checkpoint::read_id_maps(reader);
  check_saved_parts(
      reader.manifest(),
      {.job = saved.job, .directory = saved.directory, .state = saved.state, .ids = saved.ids});
  return saved;
}

void check_same_job(const SavedRun& saved, const Job& job) {
  std::set<std::string> keys;
  for (const auto& [key, value] : saved.job.settings) keys.insert(key);
  for (const auto& [key, value] : job.settings) keys.insert(key);
  for (const std::string& key : keys) {
    const std::string now = value_of(job, key), then = value_of(saved.job, key);
    if (now == then || may_change(job, key)) continue;
    throw ValueError(fmt::format("{} must be {} as in the run that '{}' holds, got {}", key, then,
                                 saved.directory.string(), now));
  }
  const Progress& done = saved.progress;
  const std::int32_t begun = done.epochs + (done.samples > 0 ? 1 : 0);
  if (job.schedule.epochs < begun) {
    throw ValueError(
        fmt::format("schedule.epochs must be at least {}, which the run that '{}' "
                    "holds has begun, got {}",
                    begun, saved.directory.string(), job.schedule.epochs));
  }
}

void check_same_data(const SavedRun& saved, const Model& model) {
  const std::map<std::string, std::string> now = model.data_digests();
  for (const auto& [name, digest] : saved.data) {
    const auto found = now.find(name);
    if (found == now.end() || found->second != digest) {
      throw ValueError(
          fmt::format("the data must be those that '{}' was trained on, got others: {} differ",
                      saved.directory.string(), name));
    }
  }
}

}  // namespace embertable::jobs
