#include "bench/others/optimizers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "bench/limits/bare_loops.h"
#include "bench/limits/limits.h"
#include "bench/loads/load_data.h"
#include "bench/loads/random.h"
#include "bench/loads/standard_loads.h"
#include "bench/machine/machine.h"
#include "bench/machine/timing.h"
#include "bench/training/timed_lane.h"
#include "embertable/embedding.h"

namespace embertable::bench {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::int32_t kDims[] = {16, 64, 256};
constexpr std::size_t kBatches = 16;

/// Floats of one batch's gradients, and the number of different gradients: more than caches hold.
constexpr std::size_t kBatchFloats = std::size_t{4} << 20;
constexpr std::size_t kGradients = 12;

/// A rule that reaches less of the limit gets a reason in the report.
constexpr double kWanted = 0.5;

/// Divisions and square roots of a rule for each element of a row, in all passes over it, and other
/// reasons for a low rate.
struct Divisions {
  const char* rule;
  int divisions, roots;
  const char* besides = "";
};
constexpr Divisions kDivisions[] = {
    {"adadelta", 1, 2},
    {"adagrad", 1, 1},
    {"adagrad_momentum", 1, 1},
    {"adam", 1, 1},
    {"adamw", 1, 1},
    {"assign", 0, 0},
    {"bounded_adagrad", 1, 1},
    {"centered_rms_prop", 1, 1},
    {"frequency_aware_adagrad", 2, 2},
    {"ftrl", 3, 2},
    {"lamb", 2, 2, "; row and slots are read twice, once for the norm of the step"},
    {"lars_sgd", 0, 0},
    {"lion", 0, 0},
    {"mdl_adagrad_light", 1, 1},
    {"momentum", 0, 0},
    {"none", 0, 0, "; sums are written to a list, while rows are fetched as for any rule"},
    {"online_yogi", 3, 2},
    {"partial_rowwise_adam", 1, 0},
    {"partial_rowwise_lamb", 2, 0, "; row and slots are read twice, once for the norm of the step"},
    {"proximal_adagrad", 2, 1},
    {"proximal_yogi", 1, 1},
    {"rms_prop", 1, 1},
    {"rowwise_adagrad", 0, 0},
    {"sgd", 0, 0},
};

const Divisions* divisions_of(const std::string& rule) {
  for (const Divisions& one : kDivisions)
    if (rule == one.rule) return &one;
  return nullptr;
}

/// The result of a rule at one dim; rates in rows a second.
struct Result {
  std::string rule;
  std::int32_t dim = 0;
  std::int64_t rows = 0;       ///< rows of the table
  std::int64_t row_bytes = 0;  ///< size of a row with its slots
  double rate = 0;
  double limit = 0;                      ///< rows and slots read and written
  double limit_with_gradients = 0;       ///< also gradients read
  std::optional<double> division_limit;  ///< none: the formula does not divide, or is not known
  double other_load = 0;
};

/// A table whose batches name each row once.
class UpdateLane {
 public:
  /// Throws ValueError if the rule cannot train such a table.
  UpdateLane(const std::string& rule, std::int32_t dim, const OptimizerBenchOptions& options)
      : dim_(dim), batch_rows_(kBatchFloats / static_cast<std::size_t>(dim)) {
    const Optimizer optimizer(rule, 1e-4);
    rows_ = static_cast<std::int64_t>(batch_rows_);
    engine_.emplace(Nested<FeatureConfig>(feature()), optimizer, strategy(options.threads));
    read_slots();  // they decide row_bytes()
    rows_ = std::max(options.mib * (1 << 20) / row_bytes(), rows_);
    engine_.emplace(Nested<FeatureConfig>(feature()), optimizer, strategy(options.threads));
    engine_->build();
    const Spread spread(static_cast<std::uint64_t>(rows_));
    ids_.resize(kBatches);
    for (std::size_t b = 0; b < kBatches; ++b) {
      for (std::size_t i = 0; i < batch_rows_; ++i) {
        const std::size_t rank = (b * batch_rows_ + i) % static_cast<std::size_t>(rows_);
        ids_[b].push_back(static_cast<std::int64_t>(spread(rank)));
      }
    }
  }

  std::int64_t rows() const { return rows_; }
  std::size_t batch_rows() const { return batch_rows_; }
  std::int64_t full_slots() const { return full_slots_; }
  std::int64_t row_slots() const { return row_slots_; }
  std::int64_t row_bytes() const { return 4 * (dim_ * (1 + full_slots_) + row_slots_); }
  const std::vector<std::vector<std::int64_t>>& ids() const { return ids_; }

  /// Returns the seconds of the updates of all batches.
  double pass(const GradientBuffers& gradients) {
    double seconds = 0;
    for (const std::vector<std::int64_t>& ids : ids_) {
      engine_->enqueue(Batch{.features = Nested<FeatureIds>(DenseIds{.values = ids, .shape = {}})});
      engine_->dequeue();
      const std::span<const float> values = gradients[next_++];
      engine_->apply_gradients(Nested<Gradient>(Gradient{.values = values, .shape = {}}));
      seconds += engine_->last_step().update_seconds;
    }
    return seconds;
  }

 private:
  FeatureConfig feature() const {
    FeatureConfig feature;
    feature.table = make_table({.vocabulary_size = rows_,
                                .dim = dim_,
                                .initializer = Initializer::uniform(-1, 1),
                                .combiner = Combiner::kSum,
                                .name = "t"});
    feature.output_shape = {static_cast<std::int64_t>(batch_rows_)};
    return feature;
  }

  static StrategyPtr strategy(int threads) {
    StrategyOptions options;
    options.executor = make_thread_pool(threads);
    return make_strategy(std::move(options));
  }

  void read_slots() {
    full_slots_ = row_slots_ = 0;
    const TableInfo table = engine_->tables().front();
    for (const TableInfo::Slot& slot : table.slots) ++(slot.row_wise ? row_slots_ : full_slots_);
  }

  std::int32_t dim_;
  std::size_t batch_rows_;
  std::int64_t rows_ = 0, full_slots_ = 0, row_slots_ = 0;
  std::optional<Embedding> engine_;
  std::vector<std::vector<std::int64_t>> ids_;
  std::size_t next_ = 0;
};

/// The same rows and slots in plain memory, read and written by bare loops.
class RecordLimit {
 public:
  RecordLimit(const UpdateLane& lane, std::int32_t dim, Executor& executor)
      : dim_(dim),
        floats_(dim_ * static_cast<std::size_t>(1 + lane.full_slots())),
        executor_(executor),
        records_(filled_floats(static_cast<std::size_t>(lane.rows()) * floats_, 0, executor)) {
    for (std::int64_t s = 0; s < lane.row_slots(); ++s) {
      row_slots_.push_back(filled_floats(static_cast<std::size_t>(lane.rows()), 0, executor));
      row_slot_.push_back(floats_of(row_slots_.back()));
    }
    for (const auto& ids : lane.ids()) rows_.emplace_back(ids.begin(), ids.end());
  }

  /// Returns the seconds of all batches. `gradients` are read too, unless null.
  double pass(const FetchAhead& ahead, const GradientBuffers* gradients) {
    return seconds_of([&] {
      for (const std::vector<std::uint32_t>& rows : rows_) {
        const float* gradient = gradients == nullptr ? nullptr : (*gradients)[next_++].data();
        run_parts(executor_, [&](std::int64_t worker, std::int64_t workers) {
          const Share share(rows.size(), worker, workers);
          return bare_update(
              {.records = floats_of(records_),
               .record_floats = floats_,
               .floats = floats_,
               .row_slots = row_slot_.data(),
               .num_row_slots = row_slot_.size(),
               .rows = rows.data() + share.begin,
               .count = share.size(),
               .ahead = ahead,
               .dim = dim_,
               .gradients = gradient == nullptr ? nullptr : gradient + share.begin * dim_,
               .gradient_rows = gradient == nullptr ? 0 : share.size()},
              level_);
        });
      }
    });
  }

 private:
  std::size_t dim_, floats_;
  Executor& executor_;
  const SimdLevel level_ = simd_level();
  Mapping records_;
  std::vector<Mapping> row_slots_;
  std::vector<float*> row_slot_;
  std::vector<std::vector<std::uint32_t>> rows_;
  std::size_t next_ = 0;
};

/// Returns how many elements per second the division units of the executor's CPUs process.
double division_rate(const Divisions& operations, Executor& executor) {
  constexpr std::size_t kFloats = 2048;
  constexpr int kPasses = 2048;
  const std::vector<float> numbers(kFloats, 1.5f);
  const SimdLevel level = simd_level();
  const double seconds = seconds_of([&] {
    run_parts(executor, [&](std::int64_t, std::int64_t) {
      float sum = 0;
      for (int pass = 0; pass < kPasses; ++pass)
        sum += bare_divide(numbers.data(), kFloats, operations.divisions, operations.roots, level);
      return sum;
    });
  });
  return static_cast<double>(kFloats) * kPasses * executor.workers() / seconds;
}

Result measure(const std::string& rule, std::int32_t dim, const OptimizerBenchOptions& options,
               const GradientBuffers& gradients, Executor& executor) {
  UpdateLane lane(rule, dim, options);
  RecordLimit limit(lane, dim, executor);
  const Divisions* operations = divisions_of(rule);
  const bool divides = operations != nullptr && operations->divisions + operations->roots > 0;
  std::vector<double> seconds, division;
  LoopTimes bare, with_gradients;
  const OtherLoad other_load;
  for (int repetition = 0; repetition <= options.repetitions; ++repetition) {
    const double pass = lane.pass(gradients);
    if (repetition == 0) continue;
    seconds.push_back(pass);
    for (std::size_t d = 0; d < std::size(LoopTimes::kWays); ++d) {
      bare.add(d, limit.pass(LoopTimes::kWays[d], nullptr));
      with_gradients.add(d, limit.pass(LoopTimes::kWays[d], &gradients));
    }
    if (divides) division.push_back(division_rate(*operations, executor));
  }
  const double rows = static_cast<double>(lane.batch_rows() * kBatches);
  Result result{.rule = rule,
                .dim = dim,
                .rows = lane.rows(),
                .row_bytes = lane.row_bytes(),
                .rate = rows / median(seconds),
                .limit = rows / bare.median(),
                .limit_with_gradients = rows / with_gradients.median(),
                .division_limit = {},
                .other_load = other_load.share()};
  if (divides) result.division_limit = median(division) / dim;
  return result;
}

std::string line(const Result& result) {
  return fmt::format(
      "  {:<24} {:>4} {:>6} {:9.2f} {:9.2f} {:6.2f} {:9.2f} {:6.2f}   {:>9}\n", result.rule,
      result.dim, result.row_bytes, result.rate * 1e-6, result.limit * 1e-6,
      result.rate / result.limit, result.limit_with_gradients * 1e-6,
      result.rate / result.limit_with_gradients,
      result.division_limit ? fmt::format("{:.2f}", *result.division_limit * 1e-6) : "-");
}

/// Says why the rule stays below what is wanted, or "".
std::string reason(const Result& result) {
  if (result.dim != 64 || result.rate / result.limit >= kWanted) return "";
  const Divisions* operations = divisions_of(result.rule);
  const double reached = result.rate / result.limit;
  if (operations == nullptr) return fmt::format("    {:.2f} of the limit\n", reached);
  const double busy = result.division_limit ? result.rate / *result.division_limit : 0;
  return fmt::format(
      "    {:.2f} of the limit: {} divisions and {} roots an element, {:.0f} % of the time for the "
      "division unit alone{}\n",
      reached, operations->divisions, operations->roots, busy * 100, operations->besides);
}

Json to_json(const Result& result, const OptimizerBenchOptions& options) {
  return {{"optimizer", result.rule},
          {"dim", result.dim},
          {"threads", options.threads},
          {"repetitions", options.repetitions},
          {"rows", result.rows},
          {"row_bytes", result.row_bytes},
          {"rows_per_second", result.rate},
          {"rmw_limit", result.limit},
          {"of_limit", result.rate / result.limit},
          {"rmw_limit_with_gradients", result.limit_with_gradients},
          {"of_limit_with_gradients", result.rate / result.limit_with_gradients},
          {"division_limit", result.division_limit ? Json(*result.division_limit) : Json()},
          {"other_load", result.other_load}};
}

std::vector<std::string> chosen_rules(const OptimizerBenchOptions& options) {
  if (options.rule.empty()) return optimizer_rules();
  return {Optimizer(options.rule, 0.1).rule()};
}

void show(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

}  // namespace

void run_optimizers(const OptimizerBenchOptions& options, bool json) {
  const GradientBuffers gradients(kBatchFloats, kGradients * kBatchFloats * sizeof(float));
  const std::shared_ptr<Executor> executor = make_thread_pool(options.threads);
  if (!json)
    show(
        fmt::format("unique rows updated, {} MiB of rows and slots, {} threads, median of {}\n"
                    "  {:<24} {:>4} {:>6} {:>9} {:>9} {:>6} {:>9} {:>6}   {:>9}\n"
                    "  {:<24} {:>4} {:>6} {:>9} {:>16} {:>16}   {:>9}\n",
                    options.mib, options.threads, options.repetitions, "rule", "D", "bytes",
                    "M rows/s", "limit", "of it", "with", "of it", "division", "", "", "a row", "",
                    "read, written", "gradients read", "limit"));
  for (const std::string& rule : chosen_rules(options)) {
    for (const std::int32_t dim : kDims) {
      try {
        const Result result = measure(rule, dim, options, gradients, *executor);
        show(json ? to_json(result, options).dump() + "\n" : line(result) + reason(result));
      } catch (const ValueError& error) {
        show(json ? Json{{"optimizer", rule}, {"dim", dim}, {"refused", error.what()}}.dump() + "\n"
                  : fmt::format("  {:<24} {:>4} {}\n", rule, dim, error.what()));
        break;  // the other dims would be refused as well
      }
    }
  }
}

namespace {

/// Returns the medians of the whole steps of two lanes that take turns, half a pass apart.
std::pair<double, double> step_seconds(const LoadData& data, const std::string& first,
                                       const std::string& second,
                                       const OptimizerBenchOptions& options) {
  TimedLane a(make_lane(data, options.threads, Optimizer(first, 1e-4)));
  TimedLane b(make_lane(data, options.threads, Optimizer(second, 1e-4)));
  const std::size_t batches = data.batches.size(), gradients = data.gradients.size();
  std::size_t steps = 0;
  for (int repetition = 0; repetition <= options.repetitions; ++repetition) {
    for (std::size_t batch = 0; batch < batches; ++batch, ++steps) {
      a.step_in_turn(batch, steps);
      b.step_in_turn((batch + (batches + 1) / 2) % batches, steps + (gradients + 1) / 2);
    }
    a.end_pass(repetition > 0);
    b.end_pass(repetition > 0);
  }
  return {a.median().step, b.median().step};
}

}  // namespace

void run_optimizer_steps(const OptimizerBenchOptions& options, bool json) {
  Load load = find_standard_load("W1");
  for (LoadTable& table : load.tables) table.rows = options.step_rows;
  const LoadData data(load);
  const auto lookups = static_cast<double>(count_lookups(data.batches));
  if (!json)
    show(
        fmt::format("whole steps of W1, {} rows a table, {} threads, median of {}\n"
                    "  {:<24} {:>12} {:>24} {:>8}\n",
                    options.step_rows, options.threads, options.repetitions, "rule", "M lookups/s",
                    "rowwise_adagrad in turns", "ratio"));
  std::vector<std::string> rules = {"adagrad", "adam"};
  if (!options.rule.empty()) rules = chosen_rules(options);
  for (const std::string& rule : rules) {
    const auto [ours, rowwise] = step_seconds(data, rule, "rowwise_adagrad", options);
    const double ratio = rowwise / ours;
    show(json ? Json{{"optimizer", rule},
                     {"workload", "W1"},
                     {"rows", options.step_rows},
                     {"threads", options.threads},
                     {"lookups_per_second", lookups / ours},
                     {"rowwise_adagrad_lookups_per_second", lookups / rowwise},
                     {"of_rowwise_adagrad", ratio}}
                        .dump() +
                    "\n"
              : fmt::format("  {:<24} {:12.2f} {:24.2f} {:8.2f}\n", rule, lookups / ours * 1e-6,
                            lookups / rowwise * 1e-6, ratio));
  }
}

}  // namespace embertable::bench
