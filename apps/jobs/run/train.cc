#include "apps/jobs/run/train.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <utility>

#include "apps/jobs/data/data_cache.h"
#include "apps/jobs/run/best_epoch.h"
#include "apps/jobs/run/digest.h"
#include "apps/jobs/run/evaluate.h"
#include "apps/jobs/run/model_saver.h"
#include "apps/jobs/run/progress.h"
#include "apps/jobs/run/ranks.h"
#include "apps/jobs/run/run_output.h"
#include "apps/jobs/run/trainer.h"
#include "base/float_environment.h"
#include "checkpoint/use_opened.h"
#include "embertable/errors.h"
#include "embertable/version.h"
#include "exchange/all_gather.h"

namespace embertable::jobs {
namespace {

/// Adds up the time between starts and stops; the constructor starts it.
class Stopwatch {
 public:
  double seconds() const { return sum_ + (running_ ? since_start() : 0); }
  void start() {
    start_ = std::chrono::steady_clock::now();
    running_ = true;
  }
  void stop() {
    sum_ = seconds();
    running_ = false;
  }
  void restart() {
    sum_ = 0;
    start();
  }

 private:
  double since_start() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  double sum_ = 0;
  bool running_ = true;
};

double per_second(std::int64_t samples, double seconds) {
  return seconds > 0 ? static_cast<double>(samples) / seconds : 0;
}

/// Returns "KEY = VALUE" line by line.
std::string lines_of(const std::map<std::string, std::string>& values) {
  std::string lines;
  for (const auto& [key, value] : values) lines += fmt::format("{} = {}\n", key, value);
  return lines;
}

std::string first_key(const IdMap& keys) {
  if (keys.num_keys() == 0) return "";
  return keys.kind() == KeyKind::kInteger ? std::to_string(keys.integer_key(0))
                                          : std::string(keys.string_key(0));
}

std::int64_t training_samples(const Job& job, const Model& model) {
  const std::int64_t samples = model.samples(Part::kTraining);
  return job.model->trains_on_validation() ? samples + model.samples(Part::kValidation) : samples;
}

/// Returns what a run reports at its start, as far as job and model know it.
StartReport start_of(const Job& job, const Model& model) {
  const Part part = measured_part(job);
  StartReport report{.job = job,
                     .threads = 0,
                     .training = training_samples(job, model),
                     .measured = model.samples(part),
                     .measured_part = to_string(part),
                     .ids = {},
                     .left_out = {},
                     .repeated_pairs = model.repeated_pairs(part),
                     .baselines = model.baselines(part),
                     .read_seconds = 0,
                     .resumed = {},
                     .warnings = {}};
  for (const KeySpace& space : model.key_spaces())
    report.ids.push_back({space.name, space.keys.num_keys(), space.keys.num_rows(),
                          space.without_record, space.empty, first_key(space.keys)});
  return report;
}

/// Returns the share of a run that is done `samples` samples into its current epoch, which has
/// `epoch_samples`.
double share_done(const ScheduleSpec& schedule, const Progress& progress, std::int64_t samples,
                  std::int64_t epoch_samples) {
  const double epochs = static_cast<double>(progress.epochs) +
                        static_cast<double>(samples) / static_cast<double>(epoch_samples);
  return epochs / static_cast<double>(schedule.epochs);
}

/// Returns the learning rate of the step that begins there.
double rate_at(const ScheduleSpec& schedule, const Progress& progress, std::int64_t samples,
               std::int64_t epoch_samples) {
  if (!schedule.linear_rate) return progress.learning_rate;
  const double left = 1 - share_done(schedule, progress, samples, epoch_samples);
  return progress.learning_rate * left;
}

class Run {
 public:
  /// `ranks`: the processes that train the job, or null.
  Run(const Job& job, const TrainOptions& options, TrainObserver& observer,
      std::shared_ptr<Ranks> ranks)
      : job_(job), options_(options), observer_(observer), ranks_(std::move(ranks)) {
    if (!options.out.empty()) out_.emplace(job, options, ranks_);
    model_ = job.model->make(job, data_options());
    if (ranks_) require_equal(*ranks_, "data set", lines_of(model_->data_digests()));
    if (found() != nullptr) check_same_data(*found(), *model_);
    read_seconds_ = clock_.seconds();
    if (training_samples(job, *model_) == 0)
      throw ValueError(fmt::format("job '{}' must have training samples, got none", job.name));
    if (job.schedule.patience > 0 && !model_->can_measure(Part::kValidation)) {
      throw ValueError(fmt::format(
          "schedule.patience must be 0 where the validation part has no samples, got {}",
          job.schedule.patience));
    }
    executor_ = options.executor ? options.executor : make_executor(options.threads);
    trainer_.emplace(job_, *model_, executor_, ranks_,
                     [this](std::string_view warning) { warnings_.emplace_back(warning); });
    if (out_ || job.schedule.patience > 0) saver_.emplace(job_, *model_, data_options());
    check_share(options.skip_bad, left_out());
    progress_.learning_rate = job.optimizer.learning_rate;
    if (found() != nullptr) go_on_from(*found());
  }

  TrainReport run() {
    if (is_first()) observer_.started(start());
    if (ranks_) ranks_->agree("", {"start of the training"});
    // The observer, which opens files of its own, may have thrown: an old run goes no earlier.
    if (options_.overwrite) out_->remove_old();
    if (job_.schedule.patience > 0) best_.emplace(options_.out, found() != nullptr, ranks_.get());
    while (!stopped() && !is_done()) run_epoch();
    const bool interrupted = stopped();
    if (!interrupted || trainer_->engine().step() > 0) save();
    TrainReport report{.interrupted = interrupted,
                       .measured_part = to_string(measured_part(job_)),
                       .steps = trainer_->engine().step(),
                       .saved = saved_directory(),
                       .seconds = progress_.seconds,
                       .fill_seconds = trainer_->times().fill,
                       .engine_seconds = trainer_->times().engine,
                       .gradient_seconds = trainer_->times().gradients,
                       .samples_per_second = per_second(progress_.trained, progress_.seconds),
                       .waited_seconds = waited()};
    if (!interrupted) {
      if (progress_.best_epoch > 0) {
        report.saved = best_->restore(progress_, *trainer_, *model_);
        report.best_epoch = progress_.best_epoch;
        if (!out_) report.saved.clear();
      }
      report.measures = measure();
      report.digest = run_digest(trainer_->engine(), *model_);
      if (is_first()) observer_.finished(report);
    }
    return report;
  }

 private:
  /// True on the process that reports and changes files.
  bool is_first() const { return !ranks_ || ranks_->is_first(); }

  /// Returns the run that is resumed, or null.
  SavedRun* found() { return out_ ? out_->found() : nullptr; }

  /// Returns the directory of the last step that is saved; empty before the first.
  std::filesystem::path saved_directory() const {
    return out_ ? out_->saved() : std::filesystem::path();
  }

  /// True once the run is asked to stop, also if it is no longer asked later.
  bool stopped() {
    if (ranks_) return ranks_->agreed_to_stop();
    stopped_ = stopped_ || (options_.stop && options_.stop());
    return stopped_;
  }

  /// Returns the seconds that each process waited for the others, none if there is one.
  std::vector<double> waited() const {
    if (!ranks_) return {};
    std::vector<double> seconds;
    const double mine = trainer_->times().waited;
    for (const std::string& bytes :
         all_gather(*ranks_, "times", {reinterpret_cast<const char*>(&mine), sizeof mine}))
      std::memcpy(&seconds.emplace_back(), bytes.data(), sizeof mine);
    return seconds;
  }

  bool is_done() const {
    const std::int32_t patience = job_.schedule.patience;
    return progress_.epochs >= job_.schedule.epochs ||
           (patience > 0 && progress_.epochs - progress_.best_epoch >= patience);
  }

  void go_on_from(SavedRun& found) {
    progress_ = found.progress;
    checkpoint::restore_opened(trainer_->engine(), *found.reader);
    model_->restore(found.parts());
    trainer_->use_looked_up(found.progress.looked_up, found.directory);
    out_->go_on();
  }

  LeftOut left_out() const {
    LeftOut all = model_->left_out();
    if (saver_) all += saver_->left_out();
    return all;
  }

  StartReport start() {
    StartReport report = start_of(job_, *model_);
    report.threads = executor_->workers();
    report.left_out = left_out();
    report.read_seconds = read_seconds_;
    report.warnings = warnings_;
    if (const SavedRun* run = found(); run != nullptr) {
      report.resumed = {run->directory, run->step, progress_.epochs, progress_.samples,
                        run->skipped};
    }
    return report;
  }

  /// Trains the rest of the current epoch, up to an interruption.
  void run_epoch() {
    epoch_clock_.restart();
    const double seconds_before = progress_.seconds;
    const std::int64_t samples_before = progress_.samples;
    const std::int64_t trained_before = progress_.trained - samples_before;
    const auto so_far = [&] { progress_.seconds = seconds_before + epoch_clock_.seconds(); };
    epoch_samples_ = model_->begin_epoch(progress_.epochs + 1);
    check_position();
    const auto rate = [&](std::int64_t samples) {
      return rate_at(job_.schedule, progress_, samples, epoch_samples_);
    };
    trainer_->train(epoch_samples_, {progress_.samples, progress_.losses}, rate,
                    [&](const Trainer::Position& position) {
                      const double taken_at = rate(progress_.samples);
                      progress_.samples = position.samples;
                      progress_.losses = position.losses;
                      progress_.trained = trained_before + position.samples;
                      so_far();
                      require_finite_loss();
                      report_step(taken_at);
                      // The last step of an epoch is saved with what follows it.
                      if (position.samples < epoch_samples_ && is_due()) save();
                      return !stopped();
                    });
    so_far();
    if (progress_.samples == epoch_samples_)
      finish_epoch(epoch_samples_ - samples_before, progress_.seconds - seconds_before);
  }

  void check_position() const {
    if (progress_.samples == 0 || progress_.samples < epoch_samples_) return;
    throw DataLoss(fmt::format("'{}': the run must be within an epoch of {} samples, got sample {}",
                               saved_directory().string(), epoch_samples_, progress_.samples));
  }

  /// Throws at the first step whose loss shows that the rows are lost: no later step finds them.
  void require_finite_loss() const {
    if (std::isfinite(progress_.losses)) return;
    throw ValueError(
        fmt::format("the run diverges: the loss must be finite, got {} in step {}, of epoch {}; a "
                    "lower optimizer.learning_rate or schedule.batch may help",
                    std::isnan(progress_.losses) ? "nan" : "inf", trainer_->engine().step(),
                    progress_.epochs + 1));
  }

  void report_step(double rate) {
    if (!is_first()) return;
    const Measure training = model_->training_measure(progress_.losses, progress_.samples);
    observer_.stepped(
        {.epoch = progress_.epochs + 1,
         .step = trainer_->engine().step(),
         .share = share_done(job_.schedule, progress_, progress_.samples, epoch_samples_),
         .trained = progress_.trained,
         .learning_rate = rate,
         .training = training,
         .seconds = progress_.seconds,
         .engine = trainer_->engine().last_step()});
  }

  /// Ends an epoch. `trained` samples took `seconds` since it began or the run was resumed.
  void finish_epoch(std::int64_t trained, double seconds) {
    EpochReport report{.epoch = progress_.epochs + 1,
                       .step = trainer_->engine().step(),
                       .trained = progress_.trained,
                       .learning_rate = rate_at(job_.schedule, progress_, 0, epoch_samples_),
                       .training = model_->training_measure(progress_.losses, epoch_samples_),
                       .validation = {},
                       .seconds = seconds,
                       .samples_per_second = per_second(trained, seconds)};
    ++progress_.epochs;
    progress_.samples = 0;
    progress_.losses = 0;
    progress_.looked_up.clear();
    progress_.learning_rate *= job_.optimizer.decay;
    if (!job_.model->trains_on_validation()) report.validation = measure();
    if (best_) report.best = keep_if_best(report.validation.front());
    if (is_first()) observer_.finished_epoch(report);
    if (job_.checkpoint.every_epoch || is_due()) save();
  }

  /// Several processes keep no cache: those that find it would wait beyond their deadline for those
  /// that must read the text.
  DataOptions data_options() const {
    return {.root = options_.data_root.empty() ? data_folder(job_) : options_.data_root,
            .cache = ranks_                   ? ""
                     : options_.cache.empty() ? cache_of(options_.out)
                                              : options_.cache,
            .skip_bad = options_.skip_bad};
  }

  bool keep_if_best(const Measure& measure) {
    if (!is_new_best(measure, progress_)) return false;
    progress_.best_epoch = progress_.epochs;
    progress_.best = measure.value;
    best_->keep(*trainer_, *saver_, progress_);
    return true;
  }

  /// True if the job wants this step to be saved.
  bool is_due() const {
    const std::int64_t every = job_.checkpoint.every_steps;
    return every > 0 && trainer_->engine().step() % every == 0;
  }

  /// Saves this step, unless there is no directory or nothing new to save.
  void save() {
    const std::int64_t step = trainer_->engine().step();
    if (!out_ || out_->has_saved(step)) return;
    epoch_clock_.stop();
    const Stopwatch clock;
    progress_.looked_up = trainer_->looked_up();
    if (is_first()) observer_.saving(step);
    out_->save(*saver_, trainer_->engine(), progress_);
    if (is_first()) observer_.saved({step, out_->saved(), clock.seconds()});
    epoch_clock_.start();
  }

  Measures measure() { return measure_part(*model_, measured_part(job_), *trainer_, job_); }

  const Stopwatch clock_;
  const Job& job_;
  const TrainOptions& options_;
  TrainObserver& observer_;
  const std::shared_ptr<Ranks> ranks_;  ///< null: this process trains alone
  std::optional<RunOutput> out_;        ///< empty: nothing is saved
  std::unique_ptr<Model> model_;
  std::shared_ptr<Executor> executor_;
  std::vector<std::string> warnings_;  ///< the engine's
  std::optional<Trainer> trainer_;
  std::optional<ModelSaver> saver_;  ///< empty if neither steps nor best epochs are saved
  std::optional<BestEpoch> best_;
  Progress progress_;
  std::int64_t epoch_samples_ = 0;  ///< samples of the current epoch
  double read_seconds_ = 0;
  bool stopped_ = false;  ///< set once options.stop has given true
  Stopwatch epoch_clock_;
};

/// Returns what must be equal on all processes before they read data.
std::string lines_of(const Job& job, const TrainOptions& options) {
  return fmt::format(
      "library = {}\nnumerics = {}\njob = {}\n{}resume = {}\noverwrite = {}\nhas out = {}\n",
      kVersion, kNumericsVersion, job.name, lines_of(job.settings), options.resume,
      options.overwrite, !options.out.empty());
}

TrainReport train_together(const Job& job, const TrainOptions& options, TrainObserver& observer) {
  const auto ranks = std::make_shared<Ranks>(options.exchange, options.stop);
  return ranks->together([&] {
    require_equal(*ranks, "job", lines_of(job, options));
    const Job ours = job_on(job, ranks->hosts());
    if (job.schedule.patience > 0 && options.out.empty()) {
      throw ValueError(
          "schedule.patience must be 0 where several processes train without a run directory: they "
          "save the best epoch in the run directory that they share");
    }
    TrainReport report = Run(ours, options, observer, ranks).run();
    ranks->agree("", {"end of the run"});
    return report;
  });
}

}  // namespace

std::int32_t TrainReport::slowest_host() const {
  const auto least = std::min_element(waited_seconds.begin(), waited_seconds.end());
  return static_cast<std::int32_t>(least - waited_seconds.begin());
}

TrainReport train(const Job& job, const TrainOptions& options, TrainObserver& observer) {
  const FloatEnvironment ours;
  if (options.overwrite && (options.resume || options.out.empty())) {
    throw ValueError(options.resume ? "resume must be false where overwrite is true, got true"
                                    : "out must be a directory where overwrite is true, got none");
  }
  if (options.exchange && options.exchange->hosts() > 1)
    return train_together(job, options, observer);
  return Run(job, options, observer, nullptr).run();
}

}  // namespace embertable::jobs
