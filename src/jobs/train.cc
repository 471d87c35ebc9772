#include "jobs/train.h"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <thread>

#include "base/float_environment.h"
#include "embertable/errors.h"
#include "jobs/data_set.h"
#include "jobs/mf_trainer.h"
#include "jobs/saved_model.h"

namespace embertable::jobs {
namespace {

class Clock {
 public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

double mean_label(const Samples& samples) {
  double sum = 0;
  for (std::int64_t s = 0; s < samples.size(); ++s) sum += samples.label(s);
  return sum / static_cast<double>(samples.size());
}

std::int32_t threads(const TrainOptions& options) {
  if (options.threads > 0) return options.threads;
  return std::max(1, static_cast<std::int32_t>(std::thread::hardware_concurrency()));
}

double per_second(std::int64_t samples, double seconds) {
  return seconds > 0 ? static_cast<double>(samples) / seconds : 0;
}

/// Before hours of training, not after them.
void check_out(const std::string& out) {
  std::error_code error;
  if (!out.empty() && std::filesystem::exists(out, error) &&
      !std::filesystem::is_empty(out, error)) {
    throw ValueError(fmt::format("out must be a new or an empty directory, got '{}'", out));
  }
}

class Run {
 public:
  Run(const Job& job, const TrainOptions& options, TrainObserver& observer)
      : job_(job),
        options_(options),
        observer_(observer),
        data_(read_data(job, options.data_root)) {
    read_seconds_ = clock_.seconds();
    if (job.split.train_on_validation) {
      training_ = data_.select({Part::kTraining, Part::kValidation});
      measured_ = data_.select({Part::kTest});
    } else {
      training_ = data_.select({Part::kTraining});
      measured_ = data_.select({Part::kValidation});
    }
    if (training_.size() == 0)
      throw ValueError(fmt::format("job '{}' must have training samples, got none", job.name));
    executor_ = options.executor ? options.executor : make_thread_pool(threads(options));
  }

  TrainReport run() {
    report_start();
    const double mean = mean_label(training_);
    MfTrainer trainer(job_, data_, static_cast<float>(mean), executor_);
    double rate = job_.optimizer.learning_rate;
    for (std::int32_t epoch = 1; epoch <= job_.schedule.epochs; ++epoch) {
      trainer.set_learning_rate(rate);
      run_epoch(trainer, epoch, rate);
      rate *= job_.optimizer.decay;
    }
    TrainReport report{.errors = measure(trainer),
                       .measured_part = measured_part(),
                       .steps = trainer.engine().step(),
                       .digest = trainer.engine().digest(),
                       .saved = {},
                       .seconds = seconds_,
                       .samples_per_second = per_second(total(), seconds_)};
    if (!options_.out.empty()) {
      report.saved =
          save_model(trainer.engine(), job_, data_, mean, options_.data_root, options_.out);
    }
    return report;
  }

 private:
  std::string measured_part() const {
    return job_.split.train_on_validation ? "test" : "validation";
  }
  std::int64_t samples() const { return training_.size(); }
  std::int64_t total() const { return samples() * job_.schedule.epochs; }

  void report_start() {
    StartReport report{.job = job_,
                       .threads = executor_->workers(),
                       .training = samples(),
                       .measured = measured_.size(),
                       .measured_part = measured_part(),
                       .ids = {},
                       .baselines = {},
                       .read_seconds = read_seconds_};
    for (const IdColumn& column : data_.columns) {
      report.ids.push_back({column.name, column.keys.size(), column.lists.without});
    }
    const auto cell = [&](const std::string& feature) {
      return data_.column(named(job_.tables, named(job_.features, feature).table).ids).cell;
    };
    report.baselines = baselines(training_, measured_, cell(job_.model.user), cell(job_.model.item),
                                 job_.data.lowest, job_.data.highest);
    observer_.started(report);
  }

  void run_epoch(MfTrainer& trainer, std::int32_t epoch, double rate) {
    const Clock clock;
    double squares = 0;
    shuffle_epoch(training_, job_.seed, epoch, order_);
    trainer.train(order_, [&](std::int64_t done, double sum) {
      squares = sum;
      observer_.stepped({.epoch = epoch,
                         .done = (epoch - 1) * samples() + done,
                         .total = total(),
                         .rmse = std::sqrt(sum / static_cast<double>(done)),
                         .seconds = seconds_ + clock.seconds(),
                         .engine = trainer.engine().last_step()});
    });
    const double seconds = clock.seconds();
    seconds_ += seconds;
    EpochReport report{.epoch = epoch,
                       .learning_rate = rate,
                       .training_rmse = std::sqrt(squares / static_cast<double>(samples())),
                       .validation = {},
                       .seconds = seconds,
                       .samples_per_second = per_second(samples(), seconds)};
    if (!job_.split.train_on_validation) report.validation = measure(trainer);
    observer_.finished_epoch(report);
  }

  Errors measure(MfTrainer& trainer) const {
    RatingMetrics metrics(job_.data.lowest, job_.data.highest);
    trainer.measure(measured_, metrics);
    return {metrics.rmse(), metrics.mae()};
  }

  const Clock clock_;
  const Job& job_;
  const TrainOptions& options_;
  TrainObserver& observer_;
  const DataSet data_;
  Samples training_;
  Samples measured_;
  Samples order_;  ///< of the running epoch
  std::shared_ptr<Executor> executor_;
  double read_seconds_ = 0;
  double seconds_ = 0;
};

}  // namespace

TrainReport train(const Job& job, const TrainOptions& options, TrainObserver& observer) {
  const FloatEnvironment ours;
  check_out(options.out);
  return Run(job, options, observer).run();
}

}  // namespace embertable::jobs
