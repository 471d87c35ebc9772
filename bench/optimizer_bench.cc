#include "bench/optimizer_bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "bench/gradients.h"
#include "bench/lane.h"
#include "bench/median.h"
#include "bench/memory.h"
#include "bench/other_load.h"
#include "bench/random.h"
#include "bench/record_loops.h"
#include "bench/stopwatch.h"
#include "bench/team.h"
#include "bench/timed_lane.h"
#include "embertable/embedding.h"

namespace embertable::bench {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::int32_t kDims[] = {16, 64, 256};
constexpr std::size_t kDistances[] = {16, 32, 64};
constexpr std::size_t kBatches = 16;

/// Gradients of one batch, and how many batches have gradients of their own: more than caches hold.
constexpr std::size_t kBatchFloats = std::size_t{4} << 20;
constexpr std::size_t kGradients = 12;

/// Where less of the limit is reached, the report gives a reason.
constexpr double kWanted = 0.5;

volatile float g_kept;

/// What a rule needs of the division unit for each element of a row, every pass over it counted,
/// and what else holds it up.
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

/// What a rule gave at one dim; rates in rows a second.
struct Result {
  std::string rule;
  std::int32_t dim = 0;
  std::int64_t rows = 0;       ///< of the table
  std::int64_t row_bytes = 0;  ///< of a row with its slots
  double rate = 0;
  double limit = 0;                      ///< rows and slots read and written
  double limit_with_gradients = 0;       ///< also gradients read
  std::optional<double> division_limit;  ///< none: the formula does not divide, or is not known
  double other_load = 0;
};

/// A table whose batches name each row once.
class UpdateLane {
 public:
  /// Throws ValueError where the rule cannot train such a table.
  UpdateLane(const std::string& rule, std::int32_t dim, const OptimizerBenchOptions& options)
      : dim_(dim), batch_rows_(kBatchFloats / static_cast<std::size_t>(dim)) {
    const Optimizer optimizer(rule, 1e-4);
    rows_ = static_cast<std::int64_t>(batch_rows_);
    engine_.emplace(Nested<FeatureConfig>(feature()), optimizer, strategy(options.threads));
    read_slots();  // which say how large a row is
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

  /// Seconds of the updates of all batches.
  double pass(std::span<const std::span<const float>> gradients) {
    double seconds = 0;
    for (const std::vector<std::int64_t>& ids : ids_) {
      engine_->enqueue(Batch{.features = Nested<FeatureIds>(DenseIds{.values = ids, .shape = {}})});
      engine_->dequeue();
      const std::span<const float> values = gradients[next_++ % gradients.size()];
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

/// The same rows and slots in plain memory, read and written in bare loops.
class RecordLimit {
 public:
  RecordLimit(const UpdateLane& lane, std::int32_t dim, Team& team)
      : dim_(dim),
        floats_(dim_ * static_cast<std::size_t>(1 + lane.full_slots())),
        records_(static_cast<std::size_t>(lane.rows()) * floats_ * sizeof(float)),
        team_(team) {
    for (std::int64_t s = 0; s < lane.row_slots(); ++s) {
      row_slots_.emplace_back(static_cast<std::size_t>(lane.rows()) * sizeof(float));
      row_slot_.push_back(row_slots_.back().as<float>());
    }
    for (const auto& ids : lane.ids()) rows_.emplace_back(ids.begin(), ids.end());
    pass(kDistances[0], {});  // maps the memory
  }

  /// Seconds of all batches; gradients are not read where there are none.
  double pass(std::size_t distance, std::span<const std::span<const float>> gradients) {
    Stopwatch watch;
    for (std::size_t b = 0; b < rows_.size(); ++b) {
      const float* gradient =
          gradients.empty() ? nullptr : gradients[next_++ % gradients.size()].data();
      team_.run([&](int worker) {
        const auto at = [&](int w) {
          return rows_[b].size() * static_cast<std::size_t>(w) /
                 static_cast<std::size_t>(team_.size());
        };
        const std::size_t first = at(worker);
        g_kept =
            update_records({.records = records_.as<float>(),
                            .floats = floats_,
                            .row_slots = row_slot_.data(),
                            .num_row_slots = row_slot_.size(),
                            .rows = rows_[b].data() + first,
                            .count = at(worker + 1) - first,
                            .distance = distance,
                            .gradients = gradient == nullptr ? nullptr : gradient + first * dim_,
                            .gradient_floats = dim_},
                           simd_level());
      });
    }
    return watch.lap();
  }

 private:
  std::size_t dim_, floats_;
  HugePages records_;
  Team& team_;
  std::vector<HugePages> row_slots_;
  std::vector<float*> row_slot_;
  std::vector<std::vector<std::uint32_t>> rows_;
  std::size_t next_ = 0;
};

/// Elements a second that the division units of the team's CPUs take.
double division_rate(const Divisions& operations, Team& team) {
  constexpr std::size_t kFloats = 2048;
  constexpr int kPasses = 2048;
  const std::vector<float> numbers(kFloats, 1.5f);
  const SimdLevel level = simd_level();
  Stopwatch watch;
  team.run([&](int) {
    float sum = 0;
    for (int pass = 0; pass < kPasses; ++pass)
      sum += divide(numbers.data(), kFloats, operations.divisions, operations.roots, level);
    g_kept = sum;
  });
  return static_cast<double>(kFloats) * kPasses * team.size() / watch.lap();
}

/// Times of one loop at each distance.
class LimitTimes {
 public:
  void run(RecordLimit& limit, std::span<const std::span<const float>> gradients) {
    for (std::size_t d = 0; d < std::size(kDistances); ++d)
      seconds_[d].push_back(limit.pass(kDistances[d], gradients));
  }
  double median() const {
    double best = std::numeric_limits<double>::infinity();
    for (const std::vector<double>& runs : seconds_) best = std::min(best, bench::median(runs));
    return best;
  }

 private:
  std::vector<double> seconds_[std::size(kDistances)];
};

Result measure(const std::string& rule, std::int32_t dim, const OptimizerBenchOptions& options,
               std::span<const std::span<const float>> gradients, Team& team) {
  UpdateLane lane(rule, dim, options);
  RecordLimit limit(lane, dim, team);
  const Divisions* operations = divisions_of(rule);
  const bool divides = operations != nullptr && operations->divisions + operations->roots > 0;
  std::vector<double> seconds, division;
  LimitTimes bare, with_gradients;
  const OtherLoad other_load;
  for (int repetition = 0; repetition <= options.repetitions; ++repetition) {
    const double pass = lane.pass(gradients);
    if (repetition == 0) continue;
    seconds.push_back(pass);
    const Team::CallerOnCpu on_cpu(team);
    bare.run(limit, {});
    with_gradients.run(limit, gradients);
    if (divides) division.push_back(division_rate(*operations, team));
    team.rest();
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

/// Why the rule stays below what is wanted, or "".
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
  const Workload shape = {
      .tables = 1, .dim = 1, .samples = static_cast<std::int32_t>(kBatchFloats)};
  const GradientBuffers gradients(shape, kGradients * kBatchFloats * sizeof(float));
  Team team(options.threads);
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
        const Result result = measure(rule, dim, options, gradients.buffers(), team);
        show(json ? to_json(result, options).dump() + "\n" : line(result) + reason(result));
      } catch (const ValueError& error) {
        show(json ? Json{{"optimizer", rule}, {"dim", dim}, {"refused", error.what()}}.dump() + "\n"
                  : fmt::format("  {:<24} {:>4} {}\n", rule, dim, error.what()));
        break;  // for rows of one number
      }
    }
  }
}

namespace {

/// Medians of the whole steps of two lanes that take turns, half a turn apart.
std::pair<double, double> step_seconds(const LaneInput& input, const std::string& first,
                                       const std::string& second, int repetitions) {
  TimedLane a(make_engine_lane(input, Optimizer(first, 1e-4)));
  TimedLane b(make_engine_lane(input, Optimizer(second, 1e-4)));
  const std::size_t batches = input.batches.size(), gradients = input.gradients.size();
  std::size_t steps = 0;
  for (int repetition = 0; repetition <= repetitions; ++repetition) {
    for (std::size_t batch = 0; batch < batches; ++batch, ++steps) {
      a.step(batch, steps % gradients);
      b.step((batch + (batches + 1) / 2) % batches, (steps + (gradients + 1) / 2) % gradients);
    }
    a.end_pass(repetition > 0);
    b.end_pass(repetition > 0);
  }
  return {a.median()->step, b.median()->step};
}

}  // namespace

void run_optimizer_steps(const OptimizerBenchOptions& options, bool json) {
  Workload workload = find_workload("W1");
  workload.rows = options.step_rows;
  const std::vector<WorkloadBatch> batches = make_batches(workload);
  const GradientBuffers gradients(workload, kGradients * kBatchFloats * sizeof(float));
  const HugePages memory(workload.output_floats() * sizeof(float));
  const LaneInput input{.workload = workload,
                        .batches = batches,
                        .gradients = gradients.buffers(),
                        .activations = {memory.as<float>(), workload.output_floats()},
                        .threads = options.threads};
  const auto lookups = static_cast<double>(count_lookups(batches));
  if (!json)
    show(
        fmt::format("whole steps of W1, {} rows a table, {} threads, median of {}\n"
                    "  {:<24} {:>12} {:>24} {:>8}\n",
                    workload.rows, options.threads, options.repetitions, "rule", "M lookups/s",
                    "rowwise_adagrad in turns", "ratio"));
  std::vector<std::string> rules = {"adagrad", "adam"};
  if (!options.rule.empty()) rules = chosen_rules(options);
  for (const std::string& rule : rules) {
    const auto [ours, rowwise] = step_seconds(input, rule, "rowwise_adagrad", options.repetitions);
    const double ratio = rowwise / ours;
    show(json ? Json{{"optimizer", rule},
                     {"workload", "W1"},
                     {"rows", workload.rows},
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
