// embertable-bench sharded times sparse_read and scatter_add of rows of 64, alternating with the
// bare loops over the same rows in the same memory.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "bench/commands/commands.h"
#include "bench/commands/report.h"
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

/// The size of a sharded variable, and how many random rows a call names.
struct ShardedBenchOptions {
  std::int64_t rows = 4'000'000;
  std::int64_t named = 1'000'000;
  int shards = 8;
};

/// A number so small that adding it changes no row, and not subnormal.
constexpr float kTiny = 1e-12f;

/// The variable's rows, those that are named, and the same ones shard by shard for the bare loops.
class ShardedLoad {
 public:
  ShardedLoad(const ShardedBenchOptions& options, int threads)
      : options_(options),
        executor_(make_thread_pool(threads)),
        memory_(rows_of(options.rows)),
        out_(rows_of(options.named)),
        values_(rows_of(options.named)),
        variable_(make_variable()) {
    Random random(1);
    const std::span<const std::int64_t> offsets = variable_.offsets();
    for (std::int64_t i = 0; i < options.named; ++i) {
      const std::int64_t id = random.below(options.rows);
      const auto shard = std::upper_bound(offsets.begin(), offsets.end(), id) - offsets.begin() - 1;
      ids_.push_back(id);
      shards_[shard].ids.push_back(id - offsets[shard]);
    }
    for (Shard& shard : shards_) shard.rows.assign(shard.ids.begin(), shard.ids.end());
  }

  void gather(const FetchAhead& ahead, bool write) {
    run_parts(*executor_, [&](std::int64_t worker, std::int64_t workers) {
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

  void update(const FetchAhead& ahead) {
    run_parts(*executor_, [&](std::int64_t worker, std::int64_t workers) {
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

void run_sharded(const ShardedBenchOptions& options, const CommonOptions& common) {
  ShardedLoad load(options, common.threads);
  const OtherLoad others;
  LoopTimes gather, gather_write, update;
  std::vector<double> reads, scatters;
  for (int repetition = 0; repetition <= common.repetitions; ++repetition) {
    const double read = load.sparse_read(), scatter = load.scatter_add();
    if (repetition == 0) continue;
    reads.push_back(read);
    scatters.push_back(scatter);
    gather.run([&](const FetchAhead& ahead) { load.gather(ahead, false); });
    gather_write.run([&](const FetchAhead& ahead) { load.gather(ahead, true); });
    update.run([&](const FetchAhead& ahead) { load.update(ahead); });
  }
  const auto rate = [&](double seconds) { return static_cast<double>(options.named) / seconds; };
  const double gather_limit = rate(gather.median()), update_limit = rate(update.median()),
               gather_write_limit = rate(gather_write.median()), read = rate(median(reads)),
               scatter = rate(median(scatters)), other_load = others.share();
  print(common.json,
        {{"sharded", "rows per second"},
         {"rows", options.rows},
         {"named", options.named},
         {"dim", kShardedDim},
         {"shards", options.shards},
         {"threads", common.threads},
         {"gather_limit", gather_limit},
         {"gather_write_limit", gather_write_limit},
         {"sparse_read", read},
         {"update_limit", update_limit},
         {"scatter_add", scatter},
         {"other_load", other_load}},
        fmt::format(
            "{} random rows of {} x {} float32 in {} shards, {} threads, median of {}\n"
            "                       million rows/s   share of the limit\n"
            "  rows read                   {:10.2f}\n"
            "  rows read and stored        {:10.2f}\n"
            "  sparse_read                 {:10.2f}   {:.2f} of reading, {:.2f} of reading and "
            "storing\n"
            "  rows read and written       {:10.2f}\n"
            "  scatter_add                 {:10.2f}   {:.2f}\n",
            options.named, options.rows, kShardedDim, options.shards, common.threads,
            common.repetitions, gather_limit / 1e6, gather_write_limit / 1e6, read / 1e6,
            read / gather_limit, read / gather_write_limit, update_limit / 1e6, scatter / 1e6,
            scatter / update_limit) +
            other_load_line(other_load));
}

}  // namespace

Command add_sharded(CLI::App& app, CommonOptions& common) {
  CLI::App* command = app.add_subcommand(
      "sharded", "sparse_read and scatter_add of random rows beside the bare loops");
  auto options = std::make_shared<ShardedBenchOptions>();
  add_number(*command, "--rows", options->rows, "Rows of the variable", 1, kMostRows);
  add_number(*command, "--named", options->named, "Rows of a call", 1, kMostRows);
  add_number(*command, "--shards", options->shards, "Components", 1, 10'000);
  return CommonAdder(*command, common).threads().repetitions(7).json().runs([options, &common] {
    run_sharded(*options, common);
  });
}

}  // namespace embertable::bench
