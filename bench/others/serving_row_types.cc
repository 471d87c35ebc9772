#include "bench/others/serving_row_types.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <vector>

#include "apps/convert/export_tables.h"
#include "base/memory.h"
#include "base/rows.h"
#include "bench/limits/bare_loops.h"
#include "bench/limits/limits.h"
#include "bench/loads/load_data.h"
#include "bench/loads/memory_need.h"
#include "bench/loads/random.h"
#include "bench/machine/machine.h"
#include "bench/machine/timing.h"
#include "embertable/embertable.h"
#include "kernels/level.h"

namespace embertable::bench {
namespace {

constexpr std::int64_t kTypedTables = 4;
constexpr std::int32_t kTypedDim = 64;
constexpr std::int64_t kTypedSamples = 1024;

/// Returns about the lookups of a pass: so many that the next pass finds few of its rows in a
/// cache.
std::int64_t pass_lookups(std::int64_t rows) {
  return std::min<std::int64_t>(4 << 20, kTypedTables * rows);
}

RowType type_of(const RowTypesBenchOptions& options, int which) {
  return which == 0 ? RowType::kFloat32 : options.row_type;
}

std::int64_t stored_bytes(RowType type) {
  return kTypedDim * bytes_per_element(type) + (type == RowType::kInt8 ? 8 : 0);
}

Nested<FeatureConfig> typed_features(std::int64_t rows, RowType type) {
  std::vector<FeatureConfig> features;
  for (std::int64_t t = 0; t < kTypedTables; ++t) {
    TableConfig table;
    table.vocabulary_size = rows;
    table.dim = kTypedDim;
    table.name = fmt::format("t{}", t);
    table.combiner = Combiner::kSum;
    table.row_type = type;
    features.emplace_back().table = make_table(std::move(table));
  }
  Structure structure = Structure::tuple(std::vector<Structure>(features.size()));
  return {std::move(structure), std::move(features)};
}

/// Writes the rows as float32, and what the other type makes of them. Each opens its own.
class TypedCheckpoints {
 public:
  TypedCheckpoints(const RowTypesBenchOptions& options, std::int64_t rows)
      : root_(options.directory / "embertable-bench-row-types") {
    std::filesystem::remove_all(root_);
    save(rows, RowType::kFloat32);
    if (options.row_type == RowType::kInt8)
      jobs::export_tables({.format = jobs::TableFormat::kInt8,
                           .from = of(RowType::kFloat32),
                           .out = of(RowType::kInt8),
                           .tables = {}},
                          [](const jobs::ConvertedArray&) {});
    else
      save(rows, options.row_type);
  }
  TypedCheckpoints(const TypedCheckpoints&) = delete;
  TypedCheckpoints& operator=(const TypedCheckpoints&) = delete;
  ~TypedCheckpoints() {
    std::error_code ignored;
    std::filesystem::remove_all(root_, ignored);
  }

  std::filesystem::path of(RowType type) const { return root_ / std::string(to_string(type)); }

 private:
  void save(std::int64_t rows, RowType type) const {
    Embedding plain(typed_features(rows, type), {}, nullptr);
    plain.build();
    plain.save(of(type));
  }

  std::filesystem::path root_;
};

/// The inputs of a pass, uniform over the rows, each with `ids` ids a sample.
class TypedInputs {
 public:
  TypedInputs(std::int64_t rows, std::int64_t ids)
      : ids_of_sample_(ids),
        calls_(std::max<std::int64_t>(1, pass_lookups(rows) / (kTypedTables * entries()))) {
    const std::int64_t count = calls() * kTypedTables * entries();
    Random random(1);
    ids_.reserve(count);
    for (std::int64_t i = 0; i < count; ++i)
      ids_.push_back(static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(rows))));
    for (std::int64_t s = 0; s <= kTypedSamples; ++s) splits_.push_back(s * ids);
    const Structure structure = Structure::tuple(std::vector<Structure>(kTypedTables));
    for (std::int64_t call = 0; call < calls(); ++call) {
      std::vector<FeatureIds> leaves;
      for (std::int64_t t = 0; t < kTypedTables; ++t) {
        const std::span<const std::int64_t> own(this->ids(call, t), entries());
        if (ids == 1)
          leaves.push_back(DenseIds{own, {}});
        else
          leaves.push_back(RaggedIds{.row_splits = splits_, .values = own});
      }
      batches_.push_back({Nested<FeatureIds>(structure, std::move(leaves)), {}});
    }
  }
  TypedInputs(const TypedInputs&) = delete;
  TypedInputs& operator=(const TypedInputs&) = delete;

  std::int64_t calls() const { return calls_; }
  std::int64_t entries() const { return kTypedSamples * ids_of_sample_; }
  std::int64_t lookups() const { return calls() * kTypedTables * entries(); }
  const std::int64_t* ids(std::int64_t call, std::int64_t table) const {
    return ids_.data() + (call * kTypedTables + table) * entries();
  }
  const std::vector<Batch>& batches() const { return batches_; }

 private:
  std::int64_t ids_of_sample_, calls_;
  std::vector<std::int64_t> ids_;     ///< [calls, tables, entries]
  std::vector<std::int64_t> splits_;  ///< [samples + 1]
  std::vector<Batch> batches_;
};

/// The bare loops of one type, in memory that the types share.
class TypedLimit {
 public:
  TypedLimit(RowType type, std::int64_t rows, const Mapping& memory, Executor& executor)
      : floats_(stored_bytes(type) / 4), rows_(rows), memory_(memory), executor_(executor) {}

  void pass(const TypedInputs& inputs, std::size_t way, float* out) {
    times_.add(way, seconds_of([&] {
                 run_parts(executor_, [&](std::int64_t, std::int64_t) {
                   float sum = 0;
                   for (std::int64_t call = 0; call < inputs.calls(); ++call)
                     for (std::int64_t t = 0; t < kTypedTables; ++t)
                       sum += gather(inputs, call, t, LoopTimes::kWays[way], out);
                   return sum;
                 });
               }));
  }
  double seconds() const { return times_.median(); }

 private:
  float gather(const TypedInputs& inputs, std::int64_t call, std::int64_t table,
               const FetchAhead& ahead, float* out) const {
    return bare_gather({.records = floats_of(memory_) + table * rows_ * floats_,
                        .record_floats = static_cast<std::size_t>(floats_),
                        .dim = static_cast<std::size_t>(floats_),
                        .ids = inputs.ids(call, table),
                        .count = static_cast<std::size_t>(inputs.entries()),
                        .ahead = ahead,
                        .out_dim = kTypedDim,
                        .out = out + table * kTypedSamples * kTypedDim,
                        .out_rows = kTypedSamples},
                       simd_level());
  }

  std::int64_t floats_, rows_;
  const Mapping& memory_;
  Executor& executor_;
  LoopTimes times_;
};

struct TypedRates {
  double rate[2];   ///< lookups a second: float32, the other type
  double limit[2];  ///< bare loops
};

/// Takes turns, after a round that does not count.
TypedRates measure_types(const RowTypesBenchOptions& options, std::int64_t rows, std::int64_t ids,
                         ServingEmbedding* const (&serving)[2], const Mapping& memory,
                         Executor& executor) {
  const TypedInputs inputs(rows, ids);
  TypedLimit limits[2] = {{type_of(options, 0), rows, memory, executor},
                          {type_of(options, 1), rows, memory, executor}};
  std::vector<float> out(kTypedTables * kTypedSamples * kTypedDim);
  std::vector<double> seconds[2];
  LookupOutput output;
  for (int repetition = 0; repetition <= options.repetitions; ++repetition) {
    for (int which = 0; which < 2; ++which) {
      const double took = seconds_of([&] {
        for (const Batch& batch : inputs.batches()) serving[which]->embedding_lookup(batch, output);
      });
      if (repetition > 0) seconds[which].push_back(took);
    }
    if (repetition == 0) continue;
    for (std::size_t way = 0; way < std::size(LoopTimes::kWays); ++way)
      for (TypedLimit& limit : limits) limit.pass(inputs, way, out.data());
  }
  const auto lookups = static_cast<double>(inputs.lookups());
  TypedRates rates{};
  for (int which = 0; which < 2; ++which) {
    rates.rate[which] = lookups / median(seconds[which]);
    rates.limit[which] = lookups / limits[which].seconds();
  }
  return rates;
}

std::string rates_as_json(const RowTypesBenchOptions& options, std::int64_t rows, std::int64_t ids,
                          const TypedRates& rates) {
  std::string text;
  for (int which = 0; which < 2; ++which)
    text += nlohmann::ordered_json{{"serving", "row types"},
                                   {"row_type", to_string(type_of(options, which))},
                                   {"rows", rows},
                                   {"ids", ids},
                                   {"lookups_per_second", rates.rate[which]},
                                   {"limit_per_second", rates.limit[which]},
                                   {"times_float32", rates.rate[which] / rates.rate[0]}}
                .dump() +
            "\n";
  return text;
}

std::string rates_as_text(const RowTypesBenchOptions& options, std::int64_t ids,
                          const TypedRates& rates) {
  std::string text;
  for (int which = 0; which < 2; ++which) {
    const RowType type = type_of(options, which);
    text += fmt::format("  {:>3} {:<9} {:>10} {:>10.1f} {:>10.1f} {:>10.2f} {:>14.2f}\n", ids,
                        to_string(type), stored_bytes(type), rates.rate[which] / 1e6,
                        rates.limit[which] / 1e6, rates.rate[which] / rates.limit[which],
                        rates.rate[which] / rates.rate[0]);
  }
  return text;
}

}  // namespace

std::string run_row_types(const RowTypesBenchOptions& options, bool json) {
  const std::int64_t wide = stored_bytes(RowType::kFloat32);
  const std::int64_t rows = std::max<std::int64_t>(1, options.bytes / kTypedTables / wide);
  const std::int64_t narrow_bytes = rows * kTypedTables * stored_bytes(options.row_type);
  const auto need = static_cast<std::size_t>(2 * options.bytes + narrow_bytes);
  if (const std::size_t free_bytes = available_memory_bytes(); !fits(need, free_bytes))
    throw std::runtime_error("serving: " + memory_needed(need, free_bytes));

  const TypedCheckpoints checkpoints(options, rows);
  const auto open = [&](RowType type) {
    return ServingEmbedding::open(checkpoints.of(type), typed_features(rows, RowType::kFloat32));
  };
  ServingEmbedding float32 = open(RowType::kFloat32), other = open(options.row_type);
  ServingEmbedding* const serving[2] = {&float32, &other};
  const std::shared_ptr<Executor> executor = make_inline_executor();
  const Mapping memory =
      filled_floats(static_cast<std::size_t>(rows * kTypedTables * kTypedDim), 0.01f, *executor);

  std::string text;
  if (!json)
    text = fmt::format(
        "{} tables x {} rows x {}, {} samples a call, one thread, in turns\n"
        "  {:>3} {:<9} {:>10} {:>10} {:>10} {:>10} {:>14}\n",
        kTypedTables, rows, kTypedDim, kTypedSamples, "ids", "rows", "bytes", "M look-", "limit",
        "of it", "times float32");
  for (const std::int64_t ids : {std::int64_t{1}, std::int64_t{20}}) {
    const TypedRates rates = measure_types(options, rows, ids, serving, memory, *executor);
    text += json ? rates_as_json(options, rows, ids, rates) : rates_as_text(options, ids, rates);
  }
  return text;
}

}  // namespace embertable::bench
