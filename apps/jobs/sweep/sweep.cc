#include "apps/jobs/sweep/sweep.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstdio>
#include <deque>
#include <exception>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <thread>

#include "apps/jobs/data/data_cache.h"
#include "apps/jobs/run/memory_use.h"
#include "base/hash.h"
#include "base/math.h"
#include "base/memory_limits.h"
#include "base/random.h"
#include "embertable/checkpoint.h"
#include "embertable/errors.h"
#include "embertable/version.h"

namespace embertable::jobs {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr std::int64_t kMostRuns = 100'000;
constexpr const char* kResults = "runs.jsonl";
constexpr const char* kRuns = "runs";
constexpr const char* kBest = "best";
constexpr const char* kCache = "data.cache";

/// Share of the available memory that runs may take.
constexpr double kShareOfMemory = 0.8;

std::optional<double> number_of(std::string_view text) {
  double number = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool good = parsed.ec == std::errc() && parsed.ptr == text.data() + text.size();
  return good && std::isfinite(number) ? std::optional(number) : std::nullopt;
}

bool is_integer(std::string_view text) {
  return text.find_first_not_of("-0123456789") == std::string_view::npos;
}

/// Parts a text at commas that are in no brackets, braces or quotes.
std::vector<std::string> parts_of(std::string_view text) {
  std::vector<std::string> parts(1);
  int depth = 0;
  char quote = 0;
  bool escaped = false;  // the character belongs to the backslash before it
  for (const char c : text) {
    if (quote != 0) {
      if (c == quote && !escaped) quote = 0;
      escaped = quote == '"' && c == '\\' && !escaped;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '[' || c == '{') {
      ++depth;
    } else if (c == ']' || c == '}') {
      --depth;
    } else if (c == ',' && depth == 0) {
      parts.emplace_back();
      continue;
    }
    parts.back() += c;
  }
  return parts;
}

void check_swept(const std::vector<SweptKey>& keys) {
  if (keys.empty()) throw ValueError("a sweep must have keys with values, got none");
  std::set<std::string> seen;
  for (const SweptKey& key : keys) {
    if (!seen.insert(key.key).second)
      throw ValueError(fmt::format("a sweep must name each key once, got '{}' twice", key.key));
  }
}

/// Returns the number of combinations of values, at most kMostRuns + 1; without a limit with a
/// range.
std::int64_t combinations(const std::vector<SweptKey>& keys) {
  std::int64_t all = 1;
  for (const SweptKey& key : keys) {
    if (key.range) return kMostRuns + 1;
    all = std::min(kMostRuns + 1, all * std::ssize(key.values));
  }
  return all;
}

std::string drawn(const SweptKey& key, std::uint64_t bits) {
  if (!key.range) return key.values[uniform_below(bits, key.values.size())];
  const auto& [low, high, integers] = *key.range;
  const double share = uniform_double(bits);
  const double above = integers ? high + 1 : high;
  const double value =
      low > 0 ? low * math::exp(share * math::log(above / low)) : low + share * (above - low);
  if (integers)
    return fmt::format("{}", static_cast<std::int64_t>(std::min(high, std::floor(value))));
  return fmt::format("{:.4g}", value);
}

/// Sum of the dims of a job's tables, to which the memory of its run is taken to be in proportion.
double dims_of(const Job& job) {
  double sum = 0;
  for (const TableSpec& table : job.tables) sum += table.dim;
  return sum;
}

/// Names a run by all that its result depends on.
std::string id_of(const Job& job, const SweepOptions& options) {
  std::string stamp = options.data_stamp;
  if (stamp.empty()) {
    const std::string root =
        fs::absolute(options.data_root.empty() ? data_folder(job) : options.data_root)
            .lexically_normal()
            .string();
    std::vector<std::string> paths;
    for (const std::string& file : job.files) paths.push_back((fs::path(root) / file).string());
    stamp = file_stamps(paths);
  }
  std::string text = fmt::format("{}\nskip_bad {}\nnumerics {}\n", stamp, options.skip_bad.text(),
                                 kNumericsVersion);
  for (const auto& [key, value] : job.settings) text += fmt::format("{} = {}\n", key, value);
  return hash_hex(std::as_bytes(std::span(text)));
}

Json json_of(const SweptRun& run) {
  Json json = {{"id", run.id}};
  for (const auto& [key, value] : run.setting) json["set"][key] = value;
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

/// Reads what `json_of` gives into a run of the same setting; false for other JSON.
bool take_json(const Json& json, SweptRun& run) try {
  if (json.contains("error")) {
    run.error = json.at("error").get<std::string>();
    return true;
  }
  for (const auto& [name, value] : json.at("validation").items())
    run.measures.push_back({name, value.is_null() ? std::nan("") : value.get<double>()});
  run.epoch = json.at("epoch").get<std::int32_t>();
  run.seconds = json.at("seconds").get<double>();
  run.digest = json.at("digest").get<std::string>();
  return !run.measures.empty();
} catch (const nlohmann::json::exception&) {
  return false;
}

/// The results that a sweep's directory keeps, a line each. The last line may be torn.
class Results {
 public:
  explicit Results(fs::path path) : path_(std::move(path)) {
    std::ifstream file(path_, std::ios::binary);
    for (std::string line; std::getline(file, line);) {
      const Json json = Json::parse(line, nullptr, false);
      if (json.is_object() && json.contains("id") && json["id"].is_string())
        known_[json["id"].get<std::string>()] = json;
    }
  }

  bool take(SweptRun& run) const {
    const auto found = known_.find(run.id);
    SweptRun taken = run;
    if (found == known_.end() || !take_json(found->second, taken)) return false;
    run = std::move(taken);
    return true;
  }

  /// Appends a line that outlives a loss of power. Throws IoError.
  void add(const SweptRun& run) {
    // What a torn line left must not take the new one with it.
    const std::string line = (is_new_ ? "\n" : "") +
                             json_of(run).dump(-1, ' ', false, Json::error_handler_t::replace) +
                             "\n";
    is_new_ = false;
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path_.c_str(), "ab"),
                                                               std::fclose);
    if (!file || std::fwrite(line.data(), 1, line.size(), file.get()) != line.size() ||
        std::fflush(file.get()) != 0 || ::fsync(::fileno(file.get())) != 0)
      throw IoError(fmt::format("'{}': cannot write", path_.string()));
  }

 private:
  fs::path path_;
  std::map<std::string, Json> known_;
  bool is_new_ = true;  ///< nothing has been appended by this object
};

/// Holds the directory of a sweep, which is new or empty, or to be gone on with.
CheckpointRun open_directory(const SweepOptions& options) {
  if (options.out.empty()) throw ValueError("out must be a directory for the sweep, got none");
  if (options.resume && options.overwrite)
    throw ValueError("resume must be false where overwrite is true, got true");
  CheckpointRun held(options.out);
  const fs::path out = options.out;
  const auto is_ours = [](const std::string& name) {
    return name == kResults || name == kRuns || name == kBest || name == kCache;
  };
  for (const fs::directory_entry& entry : fs::directory_iterator(out)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with('.')) continue;
    if (!is_ours(name))
      throw ValueError(fmt::format(
          "out must be a new or an empty directory, or that of a sweep, got '{}' with '{}'",
          out.string(), name));
    if (!options.resume && !options.overwrite)
      throw ValueError(
          fmt::format("out must be a new or an empty directory, got '{}', which holds a sweep; "
                      "--resume goes on with it, --overwrite removes it",
                      out.string()));
  }
  if (options.overwrite)
    for (const char* const name : {kResults, kRuns, kBest, kCache}) fs::remove_all(out / name);
  return held;
}

/// Keeps the measured epoch of a run.
class LastEpoch final : public TrainObserver {
 public:
  void finished_epoch(const EpochReport& report) override { epoch = report.epoch; }
  void started(const StartReport& report) override {
    if (report.resumed) epoch = report.resumed->epochs;
  }
  std::int32_t epoch = 0;
};

/// Runs jobs on threads of their own.
class Sweep {
 public:
  Sweep(const JobMaker& job_with, const std::vector<SweepSetting>& settings,
        const SweepOptions& options, SweepObserver& observer)
      : job_with_(job_with),
        options_(options),
        observer_(observer),
        held_(open_directory(options)),
        results_(fs::path(options.out) / kResults) {
    if (settings.empty()) throw ValueError("a sweep must have settings, got none");
    if (std::ssize(settings) > kMostRuns)
      throw ValueError(fmt::format("a sweep must have at most {} runs, got more", kMostRuns));
    cpus_ = options.threads > 0
                ? options.threads
                : std::max(1, static_cast<std::int32_t>(std::thread::hardware_concurrency()));
    std::set<std::string> ids;  // 0.1 and 1e-1 are one setting
    for (const SweepSetting& setting : settings) {
      Job job = job_with(changes_of(setting, false));
      const std::string id = id_of(job, options);
      if (!ids.insert(id).second) continue;
      jobs_.push_back(std::move(job));
      runs_.push_back({.number = std::ssize(runs_) + 1, .setting = setting, .id = id});
      results_.take(runs_.back()) ? void(finished_.push_back(std::ssize(runs_) - 1))
                                  : waiting_.push_back(std::ssize(runs_) - 1);
    }
  }

  SweepReport run() {
    observer_.started(jobs_.front(), std::ssize(runs_), std::ssize(finished_));
    for (const std::int64_t i : finished_) observer_.ran(runs_[i]);
    if (!waiting_.empty()) run_first();
    if (!stops_ && !waiting_.empty()) run_others();
    SweepReport report{.interrupted = stops_, .runs = {}, .best = {}};
    for (const std::int64_t i : finished_) report.runs.push_back(runs_[i]);
    rank(report.runs);
    if (stops_) return report;
    if (report.runs.front().measures.empty())
      throw ValueError(
          fmt::format("no run of the sweep has a measure: {}", report.runs.front().error));
    observer_.ranked(jobs_.front(), report.runs);
    if (options_.tests_best) train_best(report);
    return report;
  }

 private:
  static std::vector<Change> changes_of(const SweepSetting& setting, bool train_on_validation) {
    std::vector<Change> changes;
    for (const auto& [key, value] : setting) changes.push_back(key + "=" + value);
    changes.push_back(fmt::format("split.train_on_validation={}", train_on_validation));
    return changes;
  }

  fs::path folder(const char* name) const { return fs::path(options_.out) / name; }
  fs::path directory_of(const SweptRun& run) const {
    return folder(kRuns) / fmt::format("run-{}", run.id.substr(0, 12));
  }

  bool asked_to_stop() {
    if (!stops_ && options_.stop && options_.stop()) stops_ = true;
    return stops_;
  }

  TrainOptions train_options(const fs::path& out, std::int32_t threads) const {
    TrainOptions options;
    options.data_root = options_.data_root;
    options.skip_bad = options_.skip_bad;
    options.out = out.string();
    options.cache = folder(kCache).string();
    options.resume = true;
    options.threads = threads;
    options.stop = [this] { return stops_.load(); };
    return options;
  }

  /// Trains one run; false if it was interrupted. Called on any thread. What a setting is to blame
  /// for is its result; any other error, of a disk or of memory, is thrown.
  bool train_one(std::int64_t i, std::int32_t threads) {
    SweptRun& run = runs_[i];
    LastEpoch last;
    try {
      const TrainReport report = train(jobs_[i], train_options(directory_of(run), threads), last);
      if (report.interrupted) return false;
      run.measures = report.measures;
      run.epoch = report.best_epoch > 0 ? report.best_epoch : last.epoch;
      run.seconds = report.seconds;
      run.digest = report.digest;
      if (std::isnan(run.measures.front().value)) {
        run.error = fmt::format("{} of the validation part is none: it must have samples",
                                run.measures.front().name);
        run.measures.clear();
      }
    } catch (const ValueError& error) {
      run.error = error.what();
    }
    return true;
  }

  /// Trains runs on a thread each until none waits or fits beside those that train, and returns
  /// when all are done.
  void train_side_by_side(std::int64_t most, std::int32_t threads,
                          const std::function<bool(std::int64_t)>& fits) {
    std::mutex mutex;
    std::condition_variable changed;
    struct Done {
      std::int64_t run;
      bool finished;
      std::exception_ptr error;
    };
    std::deque<Done> done;
    std::map<std::int64_t, std::thread> running;
    const auto start = [&](std::int64_t i) {
      running_dims_ += dims_of(jobs_[i]);
      running.emplace(i, [&, i] {
        Done end{.run = i, .finished = false, .error = nullptr};
        try {
          end.finished = train_one(i, threads);
        } catch (...) {
          end.error = std::current_exception();
        }
        const std::lock_guard lock(mutex);
        done.push_back(std::move(end));
        changed.notify_one();
      });
    };
    const auto collect = [&] {
      for (;;) {
        std::unique_lock lock(mutex);
        if (done.empty()) return;
        const Done end = std::move(done.front());
        done.pop_front();
        lock.unlock();
        running.at(end.run).join();
        running.erase(end.run);
        running_dims_ -= dims_of(jobs_[end.run]);
        if (end.error) std::rethrow_exception(end.error);
        if (end.finished) keep(end.run);
      }
    };
    std::exception_ptr error;
    while (!running.empty() || (!waiting_.empty() && !stops_ && most > 0)) {
      try {
        while (!stops_ && !waiting_.empty() && most > 0 && std::ssize(running) < at_once_ &&
               (running.empty() || fits(waiting_.front()))) {
          start(waiting_.front());
          waiting_.pop_front();
          --most;
        }
        {
          std::unique_lock lock(mutex);
          changed.wait_for(lock, std::chrono::milliseconds(50), [&] { return !done.empty(); });
        }
        collect();
        asked_to_stop();
      } catch (...) {  // the threads that train must end before what they use does
        if (!error) error = std::current_exception();
        stops_ = true;
      }
    }
    if (error) std::rethrow_exception(error);
  }

  /// Notes a finished run's result, and removes its directory.
  void keep(std::int64_t i) {
    finished_.push_back(i);
    results_.add(runs_[i]);
    if (!options_.keep_runs) fs::remove_all(directory_of(runs_[i]));
    observer_.ran(runs_[i]);
  }

  /// Trains the first run alone, to see how much memory it takes, and to fill the cache.
  void run_first() {
    const std::int64_t first = waiting_.front();
    const MemoryUse before = memory_use();
    train_side_by_side(1, cpus_, [](std::int64_t) { return false; });
    const MemoryUse after = memory_use();
    bytes_per_dim_ = static_cast<double>(std::max<std::int64_t>(0, after.most - before.now)) /
                     std::max(1.0, dims_of(jobs_[first]));
  }

  void run_others() {
    memory_ = kShareOfMemory * static_cast<double>(memory_limits().left());
    double dims = 0;
    for (const std::int64_t i : waiting_) dims = std::max(dims, dims_of(jobs_[i]));
    const double fit = bytes_per_dim_ > 0 ? memory_ / (bytes_per_dim_ * dims) : kMostRuns;
    const std::int64_t at_once = std::clamp<std::int64_t>(
        static_cast<std::int64_t>(std::min<double>(fit, kMostRuns)), 1,
        std::min<std::int64_t>({cpus_, std::ssize(waiting_),
                                options_.runs_at_once > 0 ? options_.runs_at_once : kMostRuns}));
    const auto threads = static_cast<std::int32_t>(std::max<std::int64_t>(1, cpus_ / at_once));
    observer_.chose(at_once, threads);
    at_once_ = at_once;
    train_side_by_side(std::ssize(waiting_), threads, [this](std::int64_t i) {
      return bytes_per_dim_ * (running_dims_ + dims_of(jobs_[i])) <= memory_;
    });
  }

  /// Sorts by the first metric; runs without a measure are last.
  void rank(std::vector<SweptRun>& runs) const {
    std::sort(runs.begin(), runs.end(),
              [](const SweptRun& a, const SweptRun& b) { return a.number < b.number; });
    std::stable_sort(runs.begin(), runs.end(), [](const SweptRun& a, const SweptRun& b) {
      if (a.measures.empty() || b.measures.empty())
        return !a.measures.empty() && b.measures.empty();
      const Measure& mine = a.measures.front();
      return is_better(mine.name, mine.value, b.measures.front().value);
    });
  }

  void train_best(SweepReport& report) {
    const SweptRun& best = report.runs.front();
    std::vector<Change> changes = changes_of(best.setting, true);
    if (jobs_[best.number - 1].schedule.patience > 0) {
      changes.emplace_back("schedule.patience=0");
      changes.push_back(fmt::format("schedule.epochs={}", best.epoch));
    }
    const Job job = job_with_(changes);
    const std::string id = id_of(job, options_);
    prepare_best(id);
    TrainOptions options = train_options(folder(kBest), cpus_);
    options.stop = [this] { return asked_to_stop(); };
    TrainObserver silent;
    TrainReport trained = train(job, options, silent);
    report.interrupted = trained.interrupted;
    if (trained.interrupted) return;
    observer_.tested({job, trained});
    report.best = std::move(trained);
  }

  /// Removes the run of another setting that was the best before.
  void prepare_best(const std::string& id) const {
    const fs::path note = folder(kBest) / ".sweep-run";
    std::string held;
    std::ifstream(note) >> held;
    if (held != id) fs::remove_all(folder(kBest));
    fs::create_directories(folder(kBest));
    std::ofstream(note) << id << '\n';
  }

  const JobMaker& job_with_;
  const SweepOptions& options_;
  SweepObserver& observer_;
  CheckpointRun held_;
  Results results_;
  std::int32_t cpus_ = 1;
  std::vector<Job> jobs_;  ///< by setting
  std::vector<SweptRun> runs_;
  std::deque<std::int64_t> waiting_;
  std::vector<std::int64_t> finished_;
  std::atomic<bool> stops_ = false;
  double bytes_per_dim_ = 0;  ///< memory of a run for each dim of its tables; 0: unknown
  double memory_ = 0;         ///< memory that runs may take together
  double running_dims_ = 0;   ///< sum of the dims of the runs that train
  std::int64_t at_once_ = 1;
};

}  // namespace

SweptKey SweptKey::parse(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size())
    throw ValueError(
        fmt::format("a swept key must be KEY=VALUE,VALUE or KEY=LOW..HIGH, got '{}'", text));
  SweptKey key{.key = text.substr(0, equals), .values = {}, .range = {}};
  const std::string_view values = std::string_view(text).substr(equals + 1);
  if (const std::size_t dots = values.find(".."); dots != std::string_view::npos) {
    const std::string_view low = values.substr(0, dots), high = values.substr(dots + 2);
    const std::optional<double> first = number_of(low), last = number_of(high);
    if (first && last) {
      if (!(*first < *last))
        throw ValueError(fmt::format("{}: a range must rise, got {}..{}", key.key, low, high));
      key.range = {*first, *last, is_integer(low) && is_integer(high)};
      if (key.range->integers && (*first <= -0x1p63 || *last >= 0x1p63))
        throw ValueError(
            fmt::format("{}: whole numbers of a range must be between -2^63 and 2^63, got {}..{}",
                        key.key, low, high));
      return key;
    }
  }
  key.values = parts_of(values);
  std::set<std::string> seen;
  for (const std::string& value : key.values) {
    if (value.empty() || !seen.insert(value).second)
      throw ValueError(
          fmt::format("{}: values must be different and not empty, got '{}'", key.key, values));
  }
  return key;
}

std::vector<SweepSetting> grid_of(const std::vector<SweptKey>& keys) {
  check_swept(keys);
  for (const SweptKey& key : keys) {
    if (key.range)
      throw ValueError(fmt::format(
          "{}: a grid must have values, got a range; --random N draws from it", key.key));
  }
  if (combinations(keys) > kMostRuns)
    throw ValueError(fmt::format("a grid must have at most {} runs, got more", kMostRuns));
  std::vector<SweepSetting> settings(1);
  for (const SweptKey& key : keys) {
    std::vector<SweepSetting> longer;
    for (const SweepSetting& setting : settings) {
      for (const std::string& value : key.values) {
        longer.push_back(setting);
        longer.back().emplace_back(key.key, value);
      }
    }
    settings = std::move(longer);
  }
  return settings;
}

std::vector<SweepSetting> random_settings(const std::vector<SweptKey>& keys, std::int64_t count,
                                          std::uint64_t seed) {
  check_swept(keys);
  if (count < 1 || count > kMostRuns)
    throw ValueError(fmt::format("a sweep must draw 1 to {} settings, got {}", kMostRuns, count));
  if (combinations(keys) <= count) return grid_of(keys);
  constexpr std::int64_t kTries = 1000;  // for each setting that was not drawn before
  const std::uint64_t stream = stream_of(seed, "sweep");
  std::vector<SweepSetting> settings;
  std::set<SweepSetting> seen;
  for (std::int64_t draw = 0, tries = 0; std::ssize(settings) < count && tries < kTries; ++draw) {
    const RandomRow random(stream, static_cast<std::uint64_t>(draw));
    SweepSetting setting;
    for (std::size_t k = 0; k < keys.size(); ++k)
      setting.emplace_back(keys[k].key, drawn(keys[k], random.bits(k)));
    const bool is_new = seen.insert(setting).second;
    tries = is_new ? 0 : tries + 1;
    if (is_new) settings.push_back(std::move(setting));
  }
  return settings;
}

SweepReport sweep(const JobMaker& job_with, const std::vector<SweepSetting>& settings,
                  const SweepOptions& options, SweepObserver& observer) {
  return Sweep(job_with, settings, options, observer).run();
}

}  // namespace embertable::jobs
