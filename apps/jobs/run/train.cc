#include "apps/jobs/run/train.h"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <utility>

#include "apps/jobs/data/data_cache.h"
#include "apps/jobs/run/best_epoch.h"
#include "apps/jobs/run/digest.h"
#include "apps/jobs/run/evaluate.h"
#include "apps/jobs/run/model_saver.h"
#include "apps/jobs/run/progress.h"
#include "apps/jobs/run/trainer.h"
#include "base/float_environment.h"
#include "checkpoint/run_directory.h"
#include "embertable/errors.h"

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

/// Returns the run in `out` that is to be resumed; empty for a new run. Throws ValueError, before
/// hours of training instead of after them, if `out` is not as it should be.
std::optional<SavedRun> find_run(const CheckpointRun& out, const Job& job, bool resume) {
  const std::string shown = out.directory().string();
  if (out.steps().empty()) {
    // A run may be interrupted between its first best epoch and its first save.
    const bool may_have_best = resume && job.schedule.patience > 0;
    for (const auto& entry : std::filesystem::directory_iterator(out.directory())) {
      const std::string name = entry.path().filename().string();
      if (name.starts_with('.') || (may_have_best && name == BestEpoch::kFolder)) continue;
      throw ValueError(fmt::format("out must be a new or an empty directory, got '{}'", shown));
    }
    return {};
  }
  if (!resume) {
    throw ValueError(
        fmt::format("out must be a new or an empty directory, got '{}', which holds a "
                    "run up to step {}; --resume goes on with it",
                    shown, out.steps().back()));
  }
  SavedRun saved = read_saved_run(out.directory());
  check_same_job(saved, job);
  saved.ids.clear();  // the data number the keys anew
  return saved;
}

/// Renames steps that cannot be opened, because the run will reach their numbers again.
void set_aside_above(const CheckpointRun& out, std::int64_t step) {
  for (const std::int64_t higher : out.steps()) {
    if (higher <= step) continue;
    const std::string name = checkpoint::step_name(higher);
    std::filesystem::path aside = out.directory() / ("damaged-" + name);
    for (int k = 1; std::filesystem::exists(aside); ++k)
      aside = out.directory() / fmt::format("damaged-{}-{}", name, k);
    std::filesystem::rename(out.directory() / name, aside);
  }
}

class Run {
 public:
  Run(const Job& job, const TrainOptions& options, TrainObserver& observer)
      : job_(job), options_(options), observer_(observer) {
    if (!options.out.empty()) {
      out_.emplace(options.out);
      found_ = find_run(*out_, job, options.resume);
    }
    model_ = job.model->make(job, data_options());
    if (found_) check_same_data(*found_, *model_);
    read_seconds_ = clock_.seconds();
    if (training_samples() == 0)
      throw ValueError(fmt::format("job '{}' must have training samples, got none", job.name));
    executor_ = options.executor ? options.executor : make_executor(options.threads);
    trainer_.emplace(job_, *model_, executor_);
    if (out_) saver_.emplace(job_, *model_, data_options());
    if (job.schedule.patience > 0) best_.emplace(options.out, found_.has_value());
    progress_.learning_rate = job.optimizer.learning_rate;
    if (found_) go_on_from(*found_);
  }

  TrainReport run() {
    report_start();
    while (!stopped() && !is_done()) run_epoch();
    const bool interrupted = stopped();
    if (!interrupted || trainer_->engine().step() > 0) save();
    TrainReport report{.interrupted = interrupted,
                       .measured_part = to_string(measured_part(job_)),
                       .steps = trainer_->engine().step(),
                       .saved = saved_,
                       .seconds = progress_.seconds,
                       .fill_seconds = trainer_->times().fill,
                       .engine_seconds = trainer_->times().engine,
                       .gradient_seconds = trainer_->times().gradients,
                       .samples_per_second = per_second(progress_.trained, progress_.seconds)};
    if (!interrupted) {
      if (progress_.best_epoch > 0) {
        report.saved = best_->restore(progress_, *trainer_, *model_);
        report.best_epoch = progress_.best_epoch;
        if (!out_) report.saved.clear();
      }
      report.measures = measure();
      report.digest = run_digest(trainer_->engine(), *model_);
      observer_.finished(report);
    }
    return report;
  }

 private:
  bool stopped() const { return options_.stop != nullptr && options_.stop->load(); }

  std::int64_t training_samples() const {
    const std::int64_t samples = model_->samples(Part::kTraining);
    return job_.model->trains_on_validation() ? samples + model_->samples(Part::kValidation)
                                              : samples;
  }

  bool is_done() const {
    const std::int32_t patience = job_.schedule.patience;
    return progress_.epochs >= job_.schedule.epochs ||
           (patience > 0 && progress_.best_epoch > 0 &&
            progress_.epochs - progress_.best_epoch >= patience);
  }

  void go_on_from(const SavedRun& found) {
    progress_ = found.progress;
    trainer_->engine().restore(found.directory);
    model_->restore(found.state);
    set_aside_above(*out_, found.step);
    trainer_->use_looked_up(found.progress.looked_up);
    saved_ = found.directory;
    saved_step_ = found.step;
  }

  void report_start() {
    const Part part = measured_part(job_);
    StartReport report{.job = job_,
                       .threads = executor_->workers(),
                       .training = training_samples(),
                       .measured = model_->samples(part),
                       .measured_part = to_string(part),
                       .ids = {},
                       .left_out = model_->left_out() + (saver_ ? saver_->left_out() : 0),
                       .baselines = model_->baselines(part),
                       .read_seconds = read_seconds_,
                       .resumed = {}};
    for (const KeySpace& space : model_->key_spaces())
      report.ids.push_back(
          {space.name, space.keys.num_keys(), space.keys.num_rows(), space.without_record});
    if (found_) {
      report.resumed = {found_->directory, found_->step, progress_.epochs, progress_.samples,
                        found_->skipped};
    }
    observer_.started(report);
  }

  /// Returns the learning rate of the step after this many samples of the epoch.
  double rate_at(std::int64_t samples) const {
    if (!job_.schedule.linear_rate) return progress_.learning_rate;
    const double left = 1 - share_done(samples);
    return progress_.learning_rate * left;
  }

  double share_done(std::int64_t samples) const {
    const double epochs = static_cast<double>(progress_.epochs) +
                          static_cast<double>(samples) / static_cast<double>(epoch_samples_);
    return epochs / static_cast<double>(job_.schedule.epochs);
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
    trainer_->train(
        epoch_samples_, {progress_.samples, progress_.losses},
        [&](std::int64_t samples) { return rate_at(samples); },
        [&](const Trainer::Position& position) {
          const double rate = rate_at(progress_.samples);
          progress_.samples = position.samples;
          progress_.losses = position.losses;
          progress_.trained = trained_before + position.samples;
          so_far();
          report_step(rate);
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
                               saved_.string(), epoch_samples_, progress_.samples));
  }

  void report_step(double rate) {
    const Measure training = model_->training_measure(progress_.losses, progress_.samples);
    observer_.stepped({.epoch = progress_.epochs + 1,
                       .step = trainer_->engine().step(),
                       .share = share_done(progress_.samples),
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
                       .learning_rate = progress_.learning_rate,
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
    observer_.finished_epoch(report);
    if (job_.checkpoint.every_epoch || is_due()) save();
  }

  DataOptions data_options() const {
    return {
        .root = options_.data_root, .cache = cache_of(options_.out), .skip_bad = options_.skip_bad};
  }

  bool keep_if_best(const Measure& measure) {
    const bool any = progress_.best_epoch > 0 && !std::isnan(progress_.best);
    if (any && !is_better(measure.name, measure.value, progress_.best)) return false;
    progress_.best_epoch = progress_.epochs;
    progress_.best = measure.value;
    best_->keep(*trainer_, ModelSaver(job_, *model_, data_options()), progress_);
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
    if (!out_ || step == saved_step_) return;
    epoch_clock_.stop();
    const Stopwatch clock;
    progress_.looked_up = trainer_->looked_up();
    saved_ = saver_->save(*out_, trainer_->engine(), progress_);
    if (job_.checkpoint.keep > 0) out_->keep(job_.checkpoint.keep);
    saved_step_ = step;
    observer_.saved({step, saved_, clock.seconds()});
    epoch_clock_.start();
  }

  Measures measure() {
    return select(model_->measure(measured_part(job_), *trainer_), job_.metrics);
  }

  const Stopwatch clock_;
  const Job& job_;
  const TrainOptions& options_;
  TrainObserver& observer_;
  std::optional<CheckpointRun> out_;
  std::optional<SavedRun> found_;
  std::unique_ptr<Model> model_;
  std::shared_ptr<Executor> executor_;
  std::optional<Trainer> trainer_;
  std::optional<ModelSaver> saver_;
  std::optional<BestEpoch> best_;
  Progress progress_;
  std::int64_t epoch_samples_ = 0;  ///< samples of the current epoch
  std::filesystem::path saved_;     ///< the last saved step's directory, empty before the first
  std::int64_t saved_step_ = -1;
  double read_seconds_ = 0;
  Stopwatch epoch_clock_;
};

}  // namespace

TrainReport train(const Job& job, const TrainOptions& options, TrainObserver& observer) {
  const FloatEnvironment ours;
  return Run(job, options, observer).run();
}

}  // namespace embertable::jobs
