#include "apps/jobs/sweep/sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

#include "apps/jobs/data/data_cache.h"
#include "apps/jobs/run/memory_use.h"
#include "apps/jobs/sweep/sweep_directory.h"
#include "apps/jobs/sweep/sweep_results.h"
#include "base/hash.h"
#include "base/memory_limits.h"
#include "embertable/errors.h"
#include "embertable/version.h"

namespace embertable::jobs {
namespace {

namespace fs = std::filesystem;

/// Share of the available memory that runs may take.
constexpr double kShareOfMemory = 0.8;

/// Sum of the dims of a job's tables, to which the memory of its run is taken to be in proportion.
double dims_of(const Job& job) {
  double sum = 0;
  for (const TableSpec& table : job.tables) sum += table.dim;
  return sum;
}

/// Throws ValueError if a setting changes the metric by which runs are ranked.
void check_metric(const Job& job, const SweepSetting& setting, const Job& first) {
  if (job.metrics.front() == first.metrics.front()) return;
  std::string text;
  for (const auto& [key, value] : setting)
    text += fmt::format("{}{}={}", text.empty() ? "" : ", ", key, value);
  throw ValueError(
      fmt::format("the first metric, by which runs are ranked, must be {} in all settings as in "
                  "the first, got {} in {}; set metrics in the job instead",
                  first.metrics.front(), job.metrics.front(), text));
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

/// Keeps the last epoch and the warnings of a run, and says when it has read its data.
class RunWatch final : public TrainObserver {
 public:
  explicit RunWatch(std::function<void()> begins) : begins_(std::move(begins)) {}
  void finished_epoch(const EpochReport& report) override { epoch = report.epoch; }
  void started(const StartReport& report) override {
    if (report.resumed) epoch = report.resumed->epochs;
    warnings = report.warnings;
    begins_();
  }
  std::int32_t epoch = 0;
  std::vector<std::string> warnings;

 private:
  std::function<void()> begins_;
};

/// Runs train without the validation part, the last one with it.
constexpr std::string_view kTrainOnValidation = "split.train_on_validation";

/// Returns what a run changes in its job.
std::vector<Change> changes_of(const SweepSetting& setting, bool train_on_validation) {
  std::vector<Change> changes;
  for (const auto& [key, value] : setting) {
    const bool in_table = key == "split" && value.find("train_on_validation") != std::string::npos;
    if (key == kTrainOnValidation || in_table)
      throw ValueError(
          fmt::format("a sweep sets {} itself: it must not be swept", kTrainOnValidation));
    changes.emplace_back(key + "=" + value, fmt::format("grid {}={}", key, value));
  }
  changes.push_back(fmt::format("{}={}", kTrainOnValidation, train_on_validation));
  return changes;
}

/// Sorts by the first metric; runs without a measure are last.
void rank(std::vector<SweptRun>& runs) {
  std::sort(runs.begin(), runs.end(),
            [](const SweptRun& a, const SweptRun& b) { return a.number < b.number; });
  std::stable_sort(runs.begin(), runs.end(), [](const SweptRun& a, const SweptRun& b) {
    if (a.measures.empty() || b.measures.empty()) return !a.measures.empty() && b.measures.empty();
    const Measure& mine = a.measures.front();
    return is_better(mine.name, mine.value, b.measures.front().value);
  });
}

/// How runs train side by side.
struct SideBySide {
  std::int64_t most = 1;     ///< runs to start
  std::int64_t at_once = 1;  ///< runs that train at the same time, at most
  std::int32_t threads = 1;  ///< threads of each run

  double bytes_per_dim = 0;  ///< memory of a run for each dim of its tables; 0: unknown
  double memory = 0;         ///< bytes that runs may take together; one may always train
};

/// Runs jobs on threads of their own.
class Sweep {
 public:
  Sweep(const JobMaker& job_with, const std::vector<SweepSetting>& settings,
        const SweepOptions& options, SweepObserver& observer)
      : job_with_(job_with),
        options_(options),
        observer_(observer),
        directory_(options),
        results_(directory_.results()),
        begun_(!options.overwrite) {
    if (settings.empty()) throw ValueError("a sweep must have settings, got none");
    if (std::ssize(settings) > kMostSweptRuns)
      throw ValueError(fmt::format("a sweep must have at most {} runs, got more", kMostSweptRuns));
    cpus_ = options.threads > 0
                ? options.threads
                : std::max(1, static_cast<std::int32_t>(std::thread::hardware_concurrency()));
    std::set<std::string> ids;  // 0.1 and 1e-1 are one setting
    for (const SweepSetting& setting : settings) {
      Job job = job_with(changes_of(setting, false));
      const std::string id = id_of(job, options);
      if (!ids.insert(id).second) continue;
      if (!jobs_.empty()) check_metric(job, setting, jobs_.front());
      jobs_.push_back(std::move(job));
      runs_.push_back({.number = std::ssize(runs_) + 1, .setting = setting, .id = id});
      const bool is_done = !options.overwrite && results_.take(runs_.back());
      is_done ? finished_.push_back(std::ssize(runs_) - 1)
              : waiting_.push_back(std::ssize(runs_) - 1);
    }
  }

  SweepReport run() {
    observer_.started(jobs_.front(), std::ssize(runs_), std::ssize(finished_));
    for (const std::int64_t i : finished_) observer_.ran(runs_[i]);
    const double bytes_per_dim = waiting_.empty() ? 0 : run_first();
    if (!stops_ && !waiting_.empty()) run_others(bytes_per_dim);
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
  bool asked_to_stop() {
    if (!stops_ && options_.stop && options_.stop()) stops_ = true;
    return stops_;
  }

  TrainOptions train_options(const fs::path& out, std::int32_t threads) const {
    TrainOptions options;
    options.data_root = options_.data_root;
    options.skip_bad = options_.skip_bad;
    options.out = out.string();
    options.cache = directory_.cache().string();
    options.resume = !options_.overwrite;
    options.overwrite = options_.overwrite;
    options.threads = threads;
    options.stop = [this] { return stops_.load(); };
    return options;
  }

  /// Removes the sweep that is overwritten once a run of the new one has read its data. Called on
  /// any thread.
  void begin() {
    const std::lock_guard lock(begins_);
    if (begun_) return;
    directory_.clear(runs_);
    begun_ = true;
  }

  /// Trains one run; false if it was interrupted. Called on any thread. What a setting is to blame
  /// for is its result; any other error, of a disk or of memory, is thrown.
  bool train_one(std::int64_t i, std::int32_t threads) {
    SweptRun& run = runs_[i];
    RunWatch watch([this] { begin(); });
    try {
      const TrainReport report =
          train(jobs_[i], train_options(directory_.run(run.id), threads), watch);
      if (report.interrupted) return false;
      run.measures = report.measures;
      run.epoch = report.best_epoch > 0 ? report.best_epoch : watch.epoch;
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
    run.warnings = std::move(watch.warnings);
    return true;
  }

  /// Trains runs on a thread each until none waits or fits beside those that train, and returns
  /// when all are done.
  void train_side_by_side(const SideBySide& plan) {
    std::int64_t started = 0;
    double running_dims = 0;  // sum of the dims of the runs that train
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
      running_dims += dims_of(jobs_[i]);
      running.emplace(i, [&, i] {
        Done end{.run = i, .finished = false, .error = nullptr};
        try {
          end.finished = train_one(i, plan.threads);
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
        running_dims -= dims_of(jobs_[end.run]);
        if (end.error) std::rethrow_exception(end.error);
        if (end.finished) keep(end.run);
      }
    };
    const auto starts_more = [&] { return !stops_ && !waiting_.empty() && started < plan.most; };
    const auto fits = [&](std::int64_t i) {
      return plan.bytes_per_dim * (running_dims + dims_of(jobs_[i])) <= plan.memory;
    };
    std::exception_ptr error;
    while (!running.empty() || starts_more()) {
      try {
        while (starts_more() && std::ssize(running) < plan.at_once &&
               (running.empty() || fits(waiting_.front()))) {
          start(waiting_.front());
          waiting_.pop_front();
          ++started;
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

  /// Notes a finished run's result, and removes its directory; neither where no run could read its
  /// data.
  void keep(std::int64_t i) {
    finished_.push_back(i);
    if (begun_) {
      results_.add(runs_[i]);
      if (!options_.keep_runs) fs::remove_all(directory_.run(runs_[i].id));
    }
    observer_.ran(runs_[i]);
  }

  /// Trains the first run alone, to fill the cache. Returns how much memory it takes for each dim
  /// of its tables; 0: unknown.
  double run_first() {
    const std::int64_t first = waiting_.front();
    const MemoryUse before = memory_use();
    train_side_by_side({.threads = cpus_});
    const MemoryUse after = memory_use();
    return static_cast<double>(std::max<std::int64_t>(0, after.most - before.now)) /
           std::max(1.0, dims_of(jobs_[first]));
  }

  void run_others(double bytes_per_dim) {
    const double memory = kShareOfMemory * static_cast<double>(memory_limits().left());
    double dims = 0;
    for (const std::int64_t i : waiting_) dims = std::max(dims, dims_of(jobs_[i]));
    const double fit = bytes_per_dim > 0 ? memory / (bytes_per_dim * dims) : kMostSweptRuns;
    const std::int64_t at_once = std::clamp<std::int64_t>(
        static_cast<std::int64_t>(std::min<double>(fit, kMostSweptRuns)), 1,
        std::min<std::int64_t>(
            {cpus_, std::ssize(waiting_),
             options_.runs_at_once > 0 ? options_.runs_at_once : kMostSweptRuns}));
    const auto threads = static_cast<std::int32_t>(std::max<std::int64_t>(1, cpus_ / at_once));
    observer_.chose(at_once, threads);
    train_side_by_side({.most = std::ssize(waiting_),
                        .at_once = at_once,
                        .threads = threads,
                        .bytes_per_dim = bytes_per_dim,
                        .memory = memory});
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
    directory_.prepare_best(id);
    TrainOptions options = train_options(directory_.best(), cpus_);
    options.stop = [this] { return asked_to_stop(); };
    TrainObserver silent;
    TrainReport trained = train(job, options, silent);
    report.interrupted = trained.interrupted;
    if (trained.interrupted) return;
    observer_.tested({job, trained});
    report.best = std::move(trained);
  }

  const JobMaker& job_with_;
  const SweepOptions& options_;
  SweepObserver& observer_;
  SweepDirectory directory_;
  SweepResults results_;
  std::int32_t cpus_ = 1;
  std::vector<Job> jobs_;  ///< by setting
  std::vector<SweptRun> runs_;
  std::deque<std::int64_t> waiting_;
  std::vector<std::int64_t> finished_;
  std::atomic<bool> stops_ = false;
  std::mutex begins_;
  std::atomic<bool> begun_;  ///< the directory has nothing of a sweep that is overwritten
};

}  // namespace

SweepReport sweep(const JobMaker& job_with, const std::vector<SweepSetting>& settings,
                  const SweepOptions& options, SweepObserver& observer) {
  return Sweep(job_with, settings, options, observer).run();
}

}  // namespace embertable::jobs
