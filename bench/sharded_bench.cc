#include "bench/sharded_bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>
#include <vector>

#include "bench/limit_kernels.h"
#include "bench/limits.h"
#include "bench/median.h"
#include "bench/memory.h"
#include "bench/other_load.h"
#include "bench/random.h"
#include "bench/stopwatch.h"
#include "bench/team.h"
#include "embertable/variables/sharded_variable.h"

namespace embertable::bench {
namespace {

constexpr std::int64_t kDim = 64;

/// Keeps the compiler from dropping a loop whose result nobody wants.
volatile float g_sum_of_rows;

/// The variable's rows, those that are named, and the same ones shard by shard for the bare loops.
class ShardedLoad {
 public:
  explicit ShardedLoad(const ShardedBenchOptions& options)
      : options_(options),
        team_(options.threads),
        memory_(bytes_of(options.rows)),
        out_(bytes_of(options.named)),
        values_(bytes_of(options.named)),
        variable_(make_variable()) {
    fill();
    Random random(1);
    const std::span<const std::int64_t> offsets = variable_.offsets();
    std::vector<std::vector<std::int64_t>> by_shard(offsets.size() - 1);
    for (std::int64_t i = 0; i < options.named; ++i) {
      const auto id =
          static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(options.rows)));
      const auto shard = std::upper_bound(offsets.begin(), offsets.end(), id) - offsets.begin() - 1;
      ids_.push_back(id);
      by_shard[shard].push_back(id - offsets[shard]);
    }
    for (const std::vector<std::int64_t>& local : by_shard) {
      local_.insert(local_.end(), local.begin(), local.end());
      first_.push_back(local_.size());
    }
    named_.assign(local_.begin(), local_.end());
  }

  double gather(int distance, bool write) {
    const LimitKernels& kernels = limit_kernels(kDim);
    return seconds([&](int worker) {
      g_sum_of_rows = kernels.gather({.rows = tables_.data(),
                                      .tables = tables_.size(),
                                      .ids = local_.data(),
                                      .first = first_.data(),
                                      .worker = static_cast<std::size_t>(worker),
                                      .workers = static_cast<std::size_t>(team_.size()),
                                      .distance = static_cast<std::size_t>(distance),
                                      .out = write ? out_.as<float>() : nullptr,
                                      .out_rows = ids_.size()});
    });
  }

  double update(int distance) {
    const LimitKernels& kernels = limit_kernels(kDim);
    return seconds([&](int worker) {
      g_sum_of_rows = kernels.update({.rows = tables_.data(),
                                      .slots = nullptr,
                                      .tables = tables_.size(),
                                      .named = named_.data(),
                                      .first = first_.data(),
                                      .worker = static_cast<std::size_t>(worker),
                                      .workers = static_cast<std::size_t>(team_.size()),
                                      .distance = static_cast<std::size_t>(distance),
                                      .gradients = values_.as<float>(),
                                      .gradient_rows = ids_.size()});
    });
  }

  double sparse_read() {
    Stopwatch watch;
    variable_.sparse_read(indices(), {out_.as<std::byte>(), bytes_of(options_.named)});
    return watch.lap();
  }

  double scatter_add() {
    const Tensor values =
        Tensor::wrap(values_.as<float>(), DType::kFloat32, {options_.named, kDim}, nullptr);
    Stopwatch watch;
    variable_.scatter_add(indices(), values);
    return watch.lap();
  }

  /// Sends the threads of the bare loops to sleep.
  void rest() { team_.rest(); }

 private:
  static std::size_t bytes_of(std::int64_t rows) {
    return static_cast<std::size_t>(rows * kDim) * sizeof(float);
  }

  template <class Body>
  double seconds(Body body) {
    const Team::CallerOnCpu on_cpu(team_);
    Stopwatch watch;
    team_.run(body);
    return watch.lap();
  }

  Tensor indices() const {
    return Tensor::wrap(ids_.data(), DType::kInt64, {options_.named}, nullptr);
  }

  ShardedVariable make_variable() {
    std::vector<Variable> components;
    std::int64_t row = 0;
    for (int shard = 0; shard < options_.shards; ++shard) {
      const std::int64_t rows =
          options_.rows / options_.shards + (shard < options_.rows % options_.shards ? 1 : 0);
      tables_.push_back(memory_.as<float>() + row * kDim);
      components.push_back(
          Variable::over({.data = tables_.back(),
                          .dtype = DType::kFloat32,
                          .shape = {rows, kDim},
                          .row_stride = kDim * static_cast<std::int64_t>(sizeof(float)),
                          .assignable = true}));
      row += rows;
    }
    return ShardedVariable(std::move(components), {.executor = make_thread_pool(options_.threads)});
  }

  /// Everything has been touched before the first measurement.
  void fill() {
    team_.run([&](int worker) {
      const auto share = [&](const HugePages& memory, std::int64_t rows) {
        const std::int64_t floats = rows * kDim;
        std::fill(memory.as<float>() + floats * worker / team_.size(),
                  memory.as<float>() + floats * (worker + 1) / team_.size(), 1e-12f);
      };
      share(memory_, options_.rows);
      share(out_, options_.named);
      share(values_, options_.named);
    });
  }

  ShardedBenchOptions options_;
  Team team_;
  HugePages memory_, out_, values_;
  std::vector<float*> tables_;
  ShardedVariable variable_;
  std::vector<std::int64_t> ids_;    ///< of the whole, in no order
  std::vector<std::int64_t> local_;  ///< the same of each shard, shard by shard
  std::vector<std::uint32_t> named_;
  std::vector<std::size_t> first_ = {0};  ///< [shards + 1], into local_
};

/// Seconds of each run of one loop, by distance.
struct Runs {
  std::vector<double> by_distance[std::size(Limits::kDistances)];

  double best() const {
    double least = std::numeric_limits<double>::infinity();
    for (const std::vector<double>& runs : by_distance) least = std::min(least, median(runs));
    return least;
  }
};

}  // namespace

ShardedBenchResult run_sharded_bench(const ShardedBenchOptions& options) {
  ShardedLoad load(options);
  const OtherLoad others;
  Runs gather, gather_write, update;
  std::vector<double> reads, scatters;
  for (int repetition = -1; repetition < options.repetitions; ++repetition) {
    Runs warm_up;
    const bool counts = repetition >= 0;
    for (std::size_t d = 0; d < std::size(Limits::kDistances); ++d) {
      const int distance = Limits::kDistances[d];
      (counts ? gather : warm_up).by_distance[d].push_back(load.gather(distance, false));
      (counts ? gather_write : warm_up).by_distance[d].push_back(load.gather(distance, true));
      (counts ? update : warm_up).by_distance[d].push_back(load.update(distance));
    }
    load.rest();
    const double read = load.sparse_read(), scatter = load.scatter_add();
    if (!counts) continue;
    reads.push_back(read);
    scatters.push_back(scatter);
  }
  const auto rate = [&](double seconds) { return static_cast<double>(options.named) / seconds; };
  return {.options = options,
          .gather_limit = rate(gather.best()),
          .gather_write_limit = rate(gather_write.best()),
          .update_limit = rate(update.best()),
          .sparse_read = rate(median(reads)),
          .scatter_add = rate(median(scatters)),
          .other_load = others.share()};
}

std::string to_text(const ShardedBenchResult& r) {
  std::string text = fmt::format(
      "{} random rows of {} x {} float32 in {} shards, {} thread{}, median of {}\n"
      "                       million rows/s   share of the limit\n"
      "  rows read                   {:10.2f}\n"
      "  rows read and stored        {:10.2f}\n"
      "  sparse_read                 {:10.2f}   {:.2f} of reading, {:.2f} of reading and storing\n"
      "  rows read and written       {:10.2f}\n"
      "  scatter_add                 {:10.2f}   {:.2f}\n",
      r.options.named, r.options.rows, kDim, r.options.shards, r.options.threads,
      r.options.threads == 1 ? "" : "s", r.options.repetitions, r.gather_limit / 1e6,
      r.gather_write_limit / 1e6, r.sparse_read / 1e6, r.sparse_read / r.gather_limit,
      r.sparse_read / r.gather_write_limit, r.update_limit / 1e6, r.scatter_add / 1e6,
      r.scatter_add / r.update_limit);
  if (r.other_load > 0.05)
    text += fmt::format("  others had {:.0f} % of the processors\n", 100 * r.other_load);
  return text;
}

std::string to_json(const ShardedBenchResult& r) {
  return nlohmann::ordered_json{
             {"sharded", "rows per second"},   {"rows", r.options.rows},
             {"named", r.options.named},       {"dim", kDim},
             {"shards", r.options.shards},     {"threads", r.options.threads},
             {"gather_limit", r.gather_limit}, {"gather_write_limit", r.gather_write_limit},
             {"sparse_read", r.sparse_read},   {"update_limit", r.update_limit},
             {"scatter_add", r.scatter_add},   {"other_load", r.other_load}}
             .dump() +
         "\n";
}

}  // namespace embertable::bench
