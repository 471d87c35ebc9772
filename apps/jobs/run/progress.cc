#include "apps/jobs/run/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <utility>

#include "apps/jobs/run/ranks.h"
#include "apps/jobs/spec/saved_parts.h"
#include "checkpoint/id_maps.h"
#include "checkpoint/json_text.h"
#include "checkpoint/reader.h"
#include "embertable/errors.h"
#include "exchange/all_gather.h"

namespace embertable::jobs {
namespace {

using checkpoint::JsonField;

/// Names of the tensors that hold Progress::looked_up.
constexpr std::string_view kLookedUp = "looked_up.";

/// Maximum number of samples of a run, so that sums of them cannot overflow.
constexpr std::int64_t kMostSamples = std::int64_t{1} << 60;

/// Keys, or with a dot at the end sections, that do not affect results.
constexpr std::array<std::string_view, 6> kNeverShown = {
    "strategy.hosts", "strategy.sharding", "schedule.look_ahead",
    "checkpoint.",    "engine.",           "names."};

bool may_change(const Job& job, std::string_view key) {
  if (key == "schedule.epochs") return !job.schedule.linear_rate;
  if (key == "metrics")
    return job.schedule.patience == 0;  // otherwise the first metric decides when the run ends
  if (key.starts_with("tables.") && key.ends_with(".replicated")) return true;
  return std::any_of(kNeverShown.begin(), kNeverShown.end(), [&](std::string_view one) {
    return one.ends_with('.') ? key.starts_with(one) : key == one;
  });
}

/// Returns the key by which the value of another one, or whether it may change, is decided; "" if
/// there is none. If both differ, it is the one that was changed.
std::string key_before(std::string_view key) {
  if (key == "schedule.epochs") return "schedule.rate";
  if (key == "model.linear_regularization") return "model.regularization";
  if (key == "model.history_attributes") return "model.attributes";
  if (key == "model.history") return "model.item";
  return "";
}

std::string value_of(const Job& job, const std::string& key) {
  const auto found = job.settings.find(key);
  return found == job.settings.end() ? "nothing" : fmt::format("'{}'", found->second);
}

/// Reads the progress of a run of this job.
Progress read_progress(const JsonField& json, const ScheduleSpec& schedule) {
  Progress progress;
  progress.epochs = static_cast<std::int32_t>(json["epochs"].integer(0, schedule.epochs));
  progress.samples = json["samples"].integer(0, kMostSamples);
  progress.trained = json["trained"].integer(progress.samples, kMostSamples);
  progress.losses = json["losses"].number();
  progress.learning_rate = json["learning_rate"].number();
  progress.seconds = json["seconds"].number();
  if (!(progress.seconds >= 0 && std::isfinite(progress.seconds)))
    json["seconds"].refuse(fmt::format("must be at least 0 and finite, got {}", progress.seconds));
  progress.best_epoch = static_cast<std::int32_t>(
      json["best_epoch"].integer(0, schedule.patience > 0 ? progress.epochs : 0));
  progress.best = json["best"].number();
  return progress;
}

/// Reads where a run found its data.
DataOptions read_options(const JsonField& json) {
  DataOptions options{.root = json["folder"].text()};
  try {
    options.skip_bad = SkipBad::parse(json["skip_bad"].text());
  } catch (const ValueError& error) {
    json["skip_bad"].refuse(error.what());
  }
  return options;
}

/// Checks that the progress in a saved run fits the run's job.
void check_progress(const SavedRun& saved, const JsonField& json) {
  const ScheduleSpec& schedule = saved.job.schedule;
  const Progress& progress = saved.progress;
  if (progress.samples % schedule.batch != 0) {
    json.refuse(fmt::format("must be at the end of a batch of {}, got sample {}", schedule.batch,
                            progress.samples));
  }
  if (progress.samples > 0 && progress.epochs == schedule.epochs) {
    json.refuse(fmt::format("must be within the {} epochs of the job, got sample {} after them",
                            schedule.epochs, progress.samples));
  }
  const bool ahead = schedule.pipelined && progress.samples > 0;
  if (ahead == progress.looked_up.empty()) {
    throw misfit(saved.directory,
                 fmt::format("the run must {} activations of a next batch as its job and its "
                             "sample {} say, got {}",
                             ahead ? "have" : "lack", progress.samples,
                             progress.looked_up.empty() ? "none" : "some"));
  }
}

std::shared_ptr<const checkpoint::Reader> open_step(const std::filesystem::path& path,
                                                    Ranks* ranks) {
  const auto open = [](const std::filesystem::path& at) {
    return std::make_shared<checkpoint::Reader>(checkpoint::local_files(), at);
  };
  if (!ranks) return open(path);
  const auto first = ranks->is_first() ? open(path) : nullptr;
  const std::string step = from_first(*ranks, "name of the saved step",
                                      first ? first->directory().filename().string() : "");
  return first ? first : open(path.filename() == step ? path : path / step);
}

}  // namespace

nlohmann::ordered_json run_state(const Job& job, const Progress& progress,
                                 const std::map<std::string, std::string>& data,
                                 const DataOptions& read) {
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
  state["read"] = {{"folder", std::filesystem::absolute(read.root).lexically_normal().string()},
                   {"skip_bad", read.skip_bad.text()}};
  return state;
}

SavedRun read_saved_run(const std::filesystem::path& path, Ranks* ranks) {
  SavedRun saved;
  saved.reader = open_step(path, ranks);
  const checkpoint::Reader& reader = *saved.reader;
  saved.directory = reader.directory();
  saved.skipped = reader.skipped();
  CallerState state = reader.caller_state();
  const auto text = state.blobs.find("job.toml");
  const auto refuse = [&] {
    throw ValueError(
        fmt::format("'{}' must be what a run of train saved, got a checkpoint without a run",
                    saved.directory.string()));
  };
  if (text == state.blobs.end()) refuse();
  const checkpoint::Json json = checkpoint::parse_json(state.json, saved.directory);
  if (!json.is_object() || !json.contains("progress")) refuse();
  const JsonField root(json, saved.directory, "user");
  saved.step = reader.manifest().step;
  saved.job = parse_saved_job(text->second, root["job"].text() + ".toml");
  saved.progress = read_progress(root["progress"], saved.job.schedule);
  root["data"].each(
      [&](const std::string& name, const JsonField& digest) { saved.data[name] = digest.hex(32); });
  if (root.has("read")) saved.read = read_options(root["read"]);
  for (auto tensor = state.tensors.begin(); tensor != state.tensors.end();) {
    if (!tensor->first.starts_with(kLookedUp)) {
      ++tensor;
      continue;
    }
    saved.progress.looked_up[tensor->first.substr(kLookedUp.size())] = std::move(tensor->second);
    tensor = state.tensors.erase(tensor);
  }
  check_progress(saved, root["progress"]);
  saved.state = std::move(state);
  saved.ids = checkpoint::read_id_maps(reader);
  check_saved_parts(saved.parts());
  return saved;
}

void check_same_job(const SavedRun& saved, const Job& job) {
  std::set<std::string> keys;
  for (const auto& [key, value] : saved.job.settings) keys.insert(key);
  for (const auto& [key, value] : job.settings) keys.insert(key);
  const auto differs = [&](const std::string& key) {
    return value_of(job, key) != value_of(saved.job, key) && !may_change(job, key);
  };
  for (const std::string& key : keys) {
    if (!differs(key) || differs(key_before(key))) continue;
    const std::string now = value_of(job, key), then = value_of(saved.job, key);
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
