#include "jobs/train.h"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <utility>

#include "base/float_environment.h"
#include "checkpoint/run_directory.h"
#include "embertable/errors.h"
#include "jobs/data_set.h"
#include "jobs/evaluate.h"
#include "jobs/mf_trainer.h"
#include "jobs/model_saver.h"
#include "jobs/progress.h"

namespace embertable::jobs {
namespace {

/// Adds up the time between starts and stops; runs from its making.
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

std::vector<Part> training_parts(const Job& job) {
  if (job.split.train_on_validation) return {Part::kTraining, Part::kValidation};
  return {Part::kTraining};
}

double per_second(std::int64_t samples, double seconds) {
  return seconds > 0 ? static_cast<double>(samples) / seconds : 0;
}

/// The run that `out` holds, to go on with; nothing if it is new. Throws ValueError, before hours
/// of training and not after them, if `out` is not what it should be.
std::optional<SavedRun> find_run(const CheckpointRun& out, const Job& job, bool resume) {
  const std::string shown = out.directory().string();
  if (out.steps().empty()) {
    for (const auto& entry : std::filesystem::directory_iterator(out.directory())) {
      if (entry.path().filename().string().starts_with('.')) continue;
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
  return saved;
}

/// Frees the names of steps that cannot be opened: the run comes to their numbers again.
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
    data_ = read_data(job, options.data_root);
    if (found_) check_same_data(*found_, data_);
    read_seconds_ = clock_.seconds();
    training_ = data_.select(training_parts(job));
    measured_ = data_.select({measured_part(job)});
    if (training_.size() == 0)
      throw ValueError(fmt::format("job '{}' must have training samples, got none", job.name));
    executor_ = options.executor ? options.executor : make_executor(options.threads);
    mean_ = mean_label(training_);
    trainer_.emplace(job_, data_, static_cast<float>(mean_), executor_);
    if (out_) saver_.emplace(job_, data_, mean_, options.data_root);
    progress_.learning_rate = job.optimizer.learning_rate;
    if (found_) go_on_from(*found_);
  }

  TrainReport run() {
    report_start();
    while (!stopped() && progress_.epochs < job_.schedule.epochs) run_epoch();
    const bool interrupted = stopped();
    if (!interrupted || trainer_->engine().step() > 0) save();
    TrainReport report{.interrupted = interrupted,
                       .measured_part = to_string(measured_part(job_)),
                       .steps = trainer_->engine().step(),
                       .saved = saved_,
                       .seconds = progress_.seconds,
                       .samples_per_second = per_second(done(), progress_.seconds)};
    if (!interrupted) {
      report.errors = measure();
      report.digest = trainer_->engine().digest();
    }
    return report;
  }

 private:
  std::int64_t samples() const { return training_.size(); }
  std::int64_t done() const { return progress_.epochs * samples() + progress_.samples; }
  std::int64_t total() const { return samples() * job_.schedule.epochs; }
  bool stopped() const { return options_.stop != nullptr && options_.stop->load(); }

  void go_on_from(const SavedRun& found) {
    if (found.progress.samples >= samples()) {
      throw DataLoss(
          fmt::format("'{}': the run must be within an epoch of {} samples, got sample {}",
                      found.directory.string(), samples(), found.progress.samples));
    }
    trainer_->engine().restore(found.directory);
    set_aside_above(*out_, found.step);
    trainer_->use_looked_up(found.progress.looked_up);
    progress_ = found.progress;
    saved_ = found.directory;
    saved_step_ = found.step;
  }

  void report_start() {
    StartReport report{.job = job_,
                       .threads = executor_->workers(),
                       .training = samples(),
                       .measured = measured_.size(),
                       .measured_part = to_string(measured_part(job_)),
                       .ids = {},
                       .baselines = {},
                       .read_seconds = read_seconds_,
                       .resumed = {}};
    for (const IdColumn& column : data_.columns) {
      report.ids.push_back({column.name, column.keys.size(), column.lists.without});
    }
    const auto cell = [&](const std::string& feature) {
      return data_.column(named(job_.tables, named(job_.features, feature).table).ids).cell;
    };
    report.baselines = baselines(training_, measured_, cell(job_.model.user), cell(job_.model.item),
                                 job_.data.lowest, job_.data.highest);
    if (found_) {
      report.resumed = {found_->directory, found_->step, progress_.epochs, progress_.samples,
                        found_->skipped};
    }
    observer_.started(report);
  }

  /// Trains the rest of the epoch under way, up to an interruption.
  void run_epoch() {
    epoch_clock_.restart();
    const double seconds_before = progress_.seconds;
    const std::int64_t samples_before = progress_.samples;
    const auto so_far = [&] { progress_.seconds = seconds_before + epoch_clock_.seconds(); };
    shuffle_epoch(training_, job_.seed, progress_.epochs + 1, order_);
    trainer_->set_learning_rate(progress_.learning_rate);
    trainer_->train(order_, {progress_.samples, progress_.squares},
                    [&](const MfTrainer::Position& position) {
                      progress_.samples = position.samples;
                      progress_.squares = position.squares;
                      so_far();
                      report_step();
                      // The last step of an epoch is saved with what follows it.
                      if (position.samples < samples() && is_due()) save();
                      return !stopped();
                    });
    so_far();
    if (progress_.samples == samples())
      finish_epoch(samples() - samples_before, progress_.seconds - seconds_before);
  }

  void report_step() {
    observer_.stepped(
        {.epoch = progress_.epochs + 1,
         .done = done(),
         .total = total(),
         .rmse = std::sqrt(progress_.squares / static_cast<double>(progress_.samples)),
         .seconds = progress_.seconds,
         .engine = trainer_->engine().last_step()});
  }

  /// `trained` samples took `seconds` since the epoch began or the run was resumed.
  void finish_epoch(std::int64_t trained, double seconds) {
    EpochReport report{
        .epoch = progress_.epochs + 1,
        .learning_rate = progress_.learning_rate,
        .training_rmse = std::sqrt(progress_.squares / static_cast<double>(samples())),
        .validation = {},
        .seconds = seconds,
        .samples_per_second = per_second(trained, seconds)};
    if (!job_.split.train_on_validation) report.validation = measure();
    observer_.finished_epoch(report);
    ++progress_.epochs;
    progress_.samples = 0;
    progress_.squares = 0;
    progress_.learning_rate *= job_.optimizer.decay;
    if (job_.checkpoint.every_epoch || is_due()) save();
  }

  /// Whether this step is one that the job wants saved.
  bool is_due() const {
    const std::int64_t every = job_.checkpoint.every_steps;
    return every > 0 && trainer_->engine().step() % every == 0;
  }

  /// Saves this step, unless there is nothing to save or nowhere, or it is saved.
  void save() {
    const std::int64_t step = trainer_->engine().step();
    if (!out_ || step == saved_step_) return;
    epoch_clock_.stop();
    const Stopwatch clock;
    progress_.looked_up = trainer_->looked_up();
    saved_ = saver_->save(*out_, trainer_->engine(), progress_);
    saved_step_ = step;
    observer_.saved({step, saved_, clock.seconds()});
    epoch_clock_.start();
  }

  Errors measure() { return jobs::measure(*trainer_, job_, measured_); }

  const Stopwatch clock_;
  const Job& job_;
  const TrainOptions& options_;
  TrainObserver& observer_;
  std::optional<CheckpointRun> out_;
  std::optional<SavedRun> found_;
  DataSet data_;
  Samples training_;
  Samples measured_;
  Samples order_;  ///< of the running epoch
  std::shared_ptr<Executor> executor_;
  double mean_ = 0;
  std::optional<MfTrainer> trainer_;
  std::optional<ModelSaver> saver_;
  Progress progress_;
  std::filesystem::path saved_;  ///< the last saved step's directory, empty before the first
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
