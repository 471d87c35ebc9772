#include "apps/jobs/sweep/sweep_results.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "embertable/errors.h"

namespace embertable::jobs {
namespace {

using Json = nlohmann::ordered_json;

Json json_of(const SweptRun& run) {
  Json json = {{"id", run.id}};
  for (const auto& [key, value] : run.setting) json["set"][key] = value;
  if (!run.warnings.empty()) json["warnings"] = run.warnings;
  if (!run.error.empty()) {
    json["error"] = run.error;
    return json;
  }
  json["validation"] = Json::object();
  for (const Measure& measure : run.measures) json["validation"][measure.name] = measure.value;
  json["epoch"] = run.epoch;
  json["seconds"] = run.seconds;
  json["digest"] = run.digest;
  return json;
}

/// Reads what `json_of` gives, but for the setting; nothing of other JSON.
std::optional<SweptRun> run_of(const Json& json) try {
  SweptRun run;
  if (json.contains("warnings")) run.warnings = json.at("warnings").get<std::vector<std::string>>();
  if (json.contains("error")) {
    run.error = json.at("error").get<std::string>();
    return run;
  }
  for (const auto& [name, value] : json.at("validation").items())
    run.measures.push_back({name, value.is_null() ? std::nan("") : value.get<double>()});
  run.epoch = json.at("epoch").get<std::int32_t>();
  run.seconds = json.at("seconds").get<double>();
  run.digest = json.at("digest").get<std::string>();
  return run.measures.empty() ? std::nullopt : std::optional(std::move(run));
} catch (const nlohmann::json::exception&) {
  return std::nullopt;
}

}  // namespace

SweepResults::SweepResults(std::filesystem::path path) : path_(std::move(path)) {
  std::ifstream file(path_, std::ios::binary);
  for (std::string line; std::getline(file, line);) {
    const Json json = Json::parse(line, nullptr, false);
    if (json.is_object() && json.contains("id") && json["id"].is_string())
      known_[json["id"].get<std::string>()] = run_of(json);
  }
}

bool SweepResults::take(SweptRun& run) const {
  const auto found = known_.find(run.id);
  if (found == known_.end() || !found->second) return false;
  SweptRun known = *found->second;
  known.number = run.number;
  known.setting = std::move(run.setting);
  known.id = std::move(run.id);
  run = std::move(known);
  return true;
}

void SweepResults::add(const SweptRun& run) {
  // What a torn line left must not take the new one with it.
  const std::string line = (is_new_ ? "\n" : "") +
                           json_of(run).dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  is_new_ = false;
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path_.c_str(), "ab"),
                                                             std::fclose);
  if (!file || std::fwrite(line.data(), 1, line.size(), file.get()) != line.size() ||
      std::fflush(file.get()) != 0 || ::fsync(::fileno(file.get())) != 0)
    throw IoError(fmt::format("'{}': cannot write: {}", path_.string(), std::strerror(errno)));
}

}  // namespace embertable::jobs
