#include "bench/others/sharded.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>
#include <vector>

#include "bench/limits/bare_loops.h"
#include "bench/limits/limits.h"
#include "bench/loads/random.h"
#include "bench/machine/machine.h"
#include "bench/machine/timing.h"
#include "embertable/variables/sharded_variable.h"

namespace embertable::bench {
namespace {

constexpr std::int64_t kShardedDim = 64;
constexpr std::size_t kRowFloats = kShardedDim;

/// A number so small that adding it changes no row, and not subnormal.
constexpr float kTiny = 1e-12f;

/// The variable's rows, those that are named, and the same ones shard by shard for the bare loops.
class ShardedLoad {
 public:
  explicit ShardedLoad(const ShardedBenchOptions& options)
      : options_(options),
        executor_(make_thread_pool(options.threads)),
        memory_(rows_of(options.rows)),
        out_(rows_of(options.named)),
        values_(rows_of(options.named)),
        variable_(make_variable()) {
    Random random(1);
    const std::span<const std::int64_t> offsets = variable_.offsets();
    for (std::int64_t i = 0; i < options.named; ++i) {
      const auto id =
          static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(options.rows)));
      const auto shard = std::upper_bound(offsets.begin(), offsets.end(), id) - offsets.begin() - 1;
      ids_.push_back(id);
      Shard& of = shards_[shard];
      of.ids.push_back(id - offsets[shard]);
    }
    for (Shard& shard : shards_) shard.rows.assign(shard.ids.begin(), shard.ids.end());
  }

  double gather(const FetchAhead& ahead, bool write) {
    return seconds_of_parts([&](std::int64_t worker, std::int64_t workers) {
      float sum = 0;
      float* out = floats_of(out_);
      for (const Shard& shard : shards_) {
        const Share ids(shard.ids.size(), worker, workers);
        sum += bare_gather({.records = shard.records,
                            .record_floats = kRowFloats,
                            .dim = kRowFloats,
                            .ids = shard.ids.data() + ids.begin,
                            .count = ids.size(),
                            .ahead = ahead,
                            .out = out + ids.begin * kRowFloats,
                            .out_rows = write ? ids.size() : 0},
                           level_);
        out += shard.ids.size() * kRowFloats;
      }
      return sum;
    });
  }

  double update(const FetchAhead& ahead) {
    return seconds_of_parts([&](std::int64_t worker, std::int64_t workers) {
      float sum = 0;
      for (const Shard& shard : shards_) {
        const Share rows(shard.rows.size(), worker, workers);
        sum += bare_update({.records = shard.records,
                            .record_floats = kRowFloats,
                            .floats = kRowFloats,
                            .rows = shard.rows.data() + rows.begin,
                            .count = rows.size(),
                            .ahead = ahead,
                            .dim = kRowFloats},
                           level_);
      }
      return sum;
    });
  }

  double sparse_read() {
    return seconds_of([&] {
      const auto bytes = static_cast<std::size_t>(options_.named) * kRowFloats * sizeof(float);
      variable_.sparse_read(indices(), {out_.data(), bytes});
    });
  }

  double scatter_add() {
    const Tensor values =
        Tensor::wrap(floats_of(values_), DType::kFloat32, {options_.named, kShardedDim}, nullptr);
    return seconds_of([&] { variable_.scatter_add(indices(), values); });
  }

 private:
  struct Shard {
    float* records;
    std::vector<std::int64_t> ids;    ///< named rows of this shard
    std::vector<std::uint32_t> rows;  ///< the same
  };

  /// Rows that have been touched before the first measurement.
  Mapping rows_of(std::int64_t rows) {
    return filled_floats(static_cast<std::size_t>(rows) * kRowFloats, kTiny, *executor_);
  }

  double seconds_of_parts(FunctionRef<float(std::int64_t, std::int64_t)> part) {
    return seconds_of([&] { run_parts(*executor_, part); });
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
      shards_.push_back({.records = floats_of(memory_) + row * kShardedDim, .ids = {}, .rows = {}});
      components.push_back(
          Variable::over({.data = shards_.back().records,
                          .dtype = DType::kFloat32,
                          .shape = {rows, kShardedDim},
                          .row_stride = kShardedDim * static_cast<std::int64_t>(sizeof(float)),
                          .assignable = true}));
      row += rows;
    }
    return ShardedVariable(std::move(components), {.executor = executor_});
  }

  ShardedBenchOptions options_;
  std::shared_ptr<Executor> executor_;
  const SimdLevel level_ = simd_level();
  Mapping memory_, out_, values_;
  std::vector<Shard> shards_;
  ShardedVariable variable_;
  std::vector<std::int64_t> ids_;  ///< named rows of the whole, in random order
};

}  // namespace

ShardedBenchResult run_sharded_bench(const ShardedBenchOptions& options) {
  ShardedLoad load(options);
  const OtherLoad others;
  LoopTimes gather, gather_write, update;
  std::vector<double> reads, scatters;
  for (int repetition = -1; repetition < options.repetitions; ++repetition) {
    LoopTimes warm_up;
    const bool counts = repetition >= 0;
    for (std::size_t d = 0; d < std::size(LoopTimes::kWays); ++d) {
      const FetchAhead& ahead = LoopTimes::kWays[d];
      (counts ? gather : warm_up).add(d, load.gather(ahead, false));
      (counts ? gather_write : warm_up).add(d, load.gather(ahead, true));
      (counts ? update : warm_up).add(d, load.update(ahead));
    }
    const double read = load.sparse_read(), scatter = load.scatter_add();
    if (!counts) continue;
    reads.push_back(read);
    scatters.push_back(scatter);
  }
  const auto rate = [&](double seconds) { return static_cast<double>(options.named) / seconds; };
  return {.options = options,
          .gather_limit = rate(gather.median()),
          .gather_write_limit = rate(gather_write.median()),
          .update_limit = rate(update.median()),
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
      r.options.named, r.options.rows, kShardedDim, r.options.shards, r.options.threads,
      r.options.threads == 1 ? "" : "s", r.options.repetitions, r.gather_limit / 1e6,
      r.gather_write_limit / 1e6, r.sparse_read / 1e6, r.sparse_read / r.gather_limit,
      r.sparse_read / r.gather_write_limit, r.update_limit / 1e6, r.scatter_add / 1e6,
      r.scatter_add / r.update_limit);
  return text + other_load_line(r.other_load);
}

std::string to_json(const ShardedBenchResult& r) {
  return nlohmann::ordered_json{
             {"sharded", "rows per second"},   {"rows", r.options.rows},
             {"named", r.options.named},       {"dim", kShardedDim},
             {"shards", r.options.shards},     {"threads", r.options.threads},
             {"gather_limit", r.gather_limit}, {"gather_write_limit", r.gather_write_limit},
             {"sparse_read", r.sparse_read},   {"update_limit", r.update_limit},
             {"scatter_add", r.scatter_add},   {"other_load", r.other_load}}
             .dump() +
         "\n";
}

}  // namespace embertable::bench
