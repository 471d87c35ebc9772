// embertable-bench serving times lookups of tables that are only read: single samples and batches
// through the public functions, the opening of a checkpoint, and rows of other types.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "apps/convert/export_tables.h"
#include "base/memory.h"
#include "base/rows.h"
#include "bench/commands/commands.h"
#include "bench/commands/report.h"
#include "bench/limits/bare_loops.h"
#include "bench/limits/limits.h"
#include "bench/loads/load_data.h"
#include "bench/loads/memory_need.h"
#include "bench/loads/random.h"
#include "bench/machine/machine.h"
#include "bench/machine/timing.h"
#include "bench/others/files.h"
#include "embertable/embertable.h"
#include "kernels/level.h"

namespace embertable::bench {
namespace {

struct ServingBenchOptions {
  std::int64_t calls = 100'000;                ///< lookups of one sample; each is timed by itself
  std::filesystem::path directory;             ///< where checkpoints are written, and removed
  std::int64_t bytes = std::int64_t{4} << 30;  ///< size of a checkpoint's rows as float32
  std::string row_type = "float32";
};

constexpr std::int32_t kServingDim = 64;

/// How the ids of a lookup are given.
enum class ServingForm : std::uint8_t { kDense, kSparse, kRagged };

/// Makes tables like this one, with a feature for each, in a tuple.
Nested<FeatureConfig> serving_features(std::int64_t tables, TableConfig table,
                                       bool validates = true) {
  table.dim = kServingDim;
  std::vector<FeatureConfig> features;
  for (std::int64_t t = 0; t < tables; ++t) {
    table.name = fmt::format("t{}", t);
    features.emplace_back().table = make_table(table);
    features.back().validate_weights_and_indices = validates;
  }
  Structure structure = Structure::tuple(std::vector<Structure>(features.size()));
  return {std::move(structure), std::move(features)};
}

/// Saves new tables of these features.
void save_new(const Nested<FeatureConfig>& features, const std::filesystem::path& run) {
  Embedding plain(features, {}, nullptr);
  plain.build();
  plain.save(run);
}

/// Inputs of many calls, with uniform random ids; `ids` of each sample, all of one feature a table.
class ServingInputs {
 public:
  struct Size {
    std::int64_t tables, rows, samples, calls, ids = 1;
  };

  /// Requires: form is kRagged, or a sample has one id.
  ServingInputs(ServingForm form, const Size& size) : size_(size) {
    Random random(1);
    for (std::int64_t i = 0; i < size.calls * size.tables * entries(); ++i)
      ids_.push_back(random.below(size.rows));
    for (std::int64_t s = 0; s < size.samples; ++s) indices_.insert(indices_.end(), {s, 0});
    for (std::int64_t s = 0; s <= size.samples; ++s) splits_.push_back(s * size.ids);
    const Structure structure = Structure::tuple(std::vector<Structure>(size.tables));
    for (std::int64_t call = 0; call < size.calls; ++call) {
      std::vector<FeatureIds> leaves;
      for (std::int64_t t = 0; t < size.tables; ++t) {
        const std::span<const std::int64_t> own(ids(call, t), static_cast<std::size_t>(entries()));
        if (form == ServingForm::kDense)
          leaves.push_back(DenseIds{own, {}});
        else if (form == ServingForm::kRagged)
          leaves.push_back(RaggedIds{splits_, own});
        else
          leaves.push_back(SparseIds{indices_, own, {size.samples, 1}});
      }
      batches_.push_back({Nested<FeatureIds>(structure, std::move(leaves)), {}});
    }
  }
  ServingInputs(const ServingInputs&) = delete;
  ServingInputs& operator=(const ServingInputs&) = delete;

  const Size& size() const { return size_; }
  std::int64_t entries() const { return size_.samples * size_.ids; }
  std::int64_t lookups() const { return std::ssize(ids_); }

  /// The inputs of a call; calls go through them again and again.
  const Batch& operator[](std::int64_t call) const { return batches_[call % size_.calls]; }

  /// The ids of one table, [entries].
  const std::int64_t* ids(std::int64_t call, std::int64_t table) const {
    return ids_.data() + (call % size_.calls * size_.tables + table) * entries();
  }

 private:
  Size size_;
  std::vector<std::int64_t> ids_;      ///< [calls, tables, entries]
  std::vector<std::int64_t> indices_;  ///< [samples, 2], shared by sparse inputs
  std::vector<std::int64_t> splits_;   ///< [samples + 1], shared by ragged inputs
  std::vector<Batch> batches_;
};

/// Keeps the compiler from dropping a result that is never read.
void keep(const void* data) { asm volatile("" : : "r"(data) : "memory"); }

/// Lookups in 26 tables of 1,000 rows through the public functions, and a bare copy of the same
/// rows. Each call is timed by itself, after a tenth of them that do not count.
void run_lookups(std::int64_t samples, std::int64_t calls, bool json) {
  constexpr std::int64_t kTables = 26, kRows = 1000, kInputs = 1024;
  const Table table({{"ids", "ids", -13},
                     {"call", "call", -32},
                     {"p50_us", "p50", 9, 2},
                     {"p99_us", "p99", 9, 2},
                     {"p999_us", "p99.9", 9, 2},
                     {"mean_us", "mean", 9, 2}});
  table.begin(json, fmt::format("{} samples a call, {} features of {} tables x {} rows x {}, {} "
                                "calls; microseconds\n",
                                samples, kTables, kTables, kRows, kServingDim, calls));
  struct Ids {
    const char* name;
    ServingForm form;
    bool validates = true;
  };
  for (const Ids& ids :
       {Ids{"dense", ServingForm::kDense}, Ids{"sparse, safe", ServingForm::kSparse},
        Ids{"sparse, fast", ServingForm::kSparse, false}, Ids{"ragged", ServingForm::kRagged}}) {
    const auto features = serving_features(kTables, {.vocabulary_size = kRows}, ids.validates);
    const ServingInputs inputs(ids.form, {kTables, kRows, samples, samples > 1 ? 16 : kInputs});
    ServingEmbedding serving(features);
    const std::map<TablePtr, TableView> tables = serving.embedding_tables();
    const auto time = [&](const char* what, auto call) {
      std::vector<double> took;
      took.reserve(calls);
      double sum = 0;
      for (std::int64_t i = -calls / 10; i < calls; ++i) {
        const double micros = seconds_of([&] { call(std::abs(i)); }) * 1e6;
        if (i < 0) continue;
        took.push_back(micros);
        sum += micros;
      }
      std::ranges::sort(took);
      const auto share = [&](double q) { return took[q * static_cast<double>(took.size() - 1)]; };
      table.print(json, {{"serving", "lookup"},
                         {"samples", samples},
                         {"calls", calls},
                         {"ids", ids.name},
                         {"call", what},
                         {"p50_us", share(0.5)},
                         {"p99_us", share(0.99)},
                         {"p999_us", share(0.999)},
                         {"mean_us", sum / static_cast<double>(calls)}});
    };
    LookupOutput output;
    time("ServingEmbedding, reused output", [&](std::int64_t i) {
      serving.embedding_lookup(inputs[i], output);
      keep(&output);
    });
    time("ServingEmbedding, fresh output", [&](std::int64_t i) {
      const LookupOutput fresh = serving.embedding_lookup(inputs[i]);
      keep(&fresh);
    });
    time("function, reused output", [&](std::int64_t i) {
      serving_embedding_lookup(inputs[i], tables, features, output);
      keep(&output);
    });
    time("function, fresh output", [&](std::int64_t i) {
      const LookupOutput fresh = serving_embedding_lookup(inputs[i], tables, features);
      keep(&fresh);
    });
    std::vector<TableView> views;
    for (const FeatureConfig& feature : features.leaves())
      views.push_back(tables.at(feature.table));
    std::vector<float> out(kTables * samples * kServingDim);
    time("bare copy of the rows", [&](std::int64_t i) {
      const std::int64_t* id = inputs.ids(i, 0);
      float* to = out.data();
      for (const TableView& view : views)
        for (std::int64_t s = 0; s < samples; ++s, ++id, to += kServingDim)
          std::memcpy(to, view.data + *id * view.row_stride, kServingDim * sizeof(float));
      keep(out.data());
    });
  }
}

constexpr std::int64_t kStoredTables = 4;

/// Opens a checkpoint in every way and looks one row of each table up.
void run_opening(const ServingBenchOptions& options, bool json) {
  const std::int64_t rows =
      options.bytes / kStoredTables / kServingDim / static_cast<std::int64_t>(sizeof(float));
  const Nested<FeatureConfig> features = serving_features(
      kStoredTables, {.vocabulary_size = rows, .initializer = Initializer::zeros()});
  const ScratchFolder run(options.directory / "embertable-bench-serving");
  save_new(features, run.path());
  const Table table(
      {{"way", "", -16}, {"open_ms", "open", 10, 2}, {"first_lookup_ms", "first lookup", 14, 2}});
  table.begin(json,
              fmt::format("a checkpoint of {} tables x {} rows x {}, {:.2f} GiB, in {}; "
                          "milliseconds\n",
                          kStoredTables, rows, kServingDim,
                          static_cast<double>(options.bytes) / (1 << 30), run.path().string()));
  struct Way {
    const char* name;
    OpenTables tables;
    Checks checks;
  };
  for (const Way& way : {Way{"map, lazy", OpenTables::kMap, Checks::kLazy},
                         Way{"map, none", OpenTables::kMap, Checks::kNone},
                         Way{"map, full", OpenTables::kMap, Checks::kFull},
                         Way{"load, full", OpenTables::kLoad, Checks::kFull},
                         Way{"load, none", OpenTables::kLoad, Checks::kNone}}) {
    const ServingInputs inputs(ServingForm::kDense, {kStoredTables, rows, 1, 1});
    LookupOutput output;
    std::optional<ServingEmbedding> serving;
    const double opened = seconds_of([&] {
      serving.emplace(ServingEmbedding::open(run.path(), features,
                                             {.tables = way.tables, .checks = way.checks}));
    });
    const double looked_up = seconds_of([&] { serving->embedding_lookup(inputs[0], output); });
    table.print(json, {{"serving", "open"},
                       {"way", way.name},
                       {"open_ms", opened * 1e3},
                       {"first_lookup_ms", (opened + looked_up) * 1e3}});
  }
}

/// Rows of one type: a checkpoint that is open, and the bare loops over as many bytes.
struct TypedRows {
  RowType type;
  std::int64_t row_bytes;
  std::optional<ServingEmbedding> serving = {};
  std::vector<double> seconds = {};
  LoopTimes limit = {};
};

TypedRows rows_of_type(RowType type) {
  return {type, kServingDim * bytes_per_element(type) + (type == RowType::kInt8 ? 8 : 0)};
}

/// Times a pass over the inputs, and the bare loops that read the same bytes of `memory` and write
/// the same activations. A first pass does not count.
void time_pass(TypedRows& of, const ServingInputs& inputs, const Mapping& memory,
               LookupOutput& output, bool counts) {
  const ServingInputs::Size& size = inputs.size();
  const double took = seconds_of([&] {
    for (std::int64_t call = 0; call < size.calls; ++call)
      of.serving->embedding_lookup(inputs[call], output);
  });
  if (!counts) return;
  of.seconds.push_back(took);
  const std::int64_t floats = of.row_bytes / 4, outputs = size.samples * kServingDim;
  std::vector<float> out(size.tables * outputs);
  of.limit.run([&](const FetchAhead& ahead) {
    float sum = 0;
    for (std::int64_t call = 0; call < size.calls; ++call)
      for (std::int64_t t = 0; t < size.tables; ++t)
        sum += bare_gather({.records = floats_of(memory) + t * size.rows * floats,
                            .record_floats = static_cast<std::size_t>(floats),
                            .dim = static_cast<std::size_t>(floats),
                            .ids = inputs.ids(call, t),
                            .count = static_cast<std::size_t>(inputs.entries()),
                            .ahead = ahead,
                            .out_dim = kServingDim,
                            .out = out.data() + t * outputs,
                            .out_rows = static_cast<std::size_t>(size.samples)},
                           simd_level());
    keep(&sum);
  });
}

/// Looks up rows of one type in turns with the same rows as float32, one and twenty ids a sample.
/// Throws std::runtime_error if memory does not suffice.
void run_row_types(const ServingBenchOptions& options, bool json) {
  constexpr std::int64_t kSamples = 1024, kPassLookups = 4 << 20;
  constexpr int kRepetitions = 7;
  TypedRows both[] = {rows_of_type(RowType::kFloat32),
                      rows_of_type(parse_row_type(options.row_type))};
  const std::int64_t rows =
      std::max<std::int64_t>(1, options.bytes / kStoredTables / both[0].row_bytes);
  const auto need =
      static_cast<std::size_t>(2 * options.bytes + rows * kStoredTables * both[1].row_bytes);
  if (const std::size_t free_bytes = available_memory_bytes(); !fits(need, free_bytes))
    throw std::runtime_error("serving: " + memory_needed(need, free_bytes));

  const ScratchFolder folder(options.directory / "embertable-bench-row-types");
  const auto run_of = [&](RowType type) { return folder.path() / std::string(to_string(type)); };
  const auto features = [&](RowType type) {
    return serving_features(
        kStoredTables, {.vocabulary_size = rows, .combiner = Combiner::kSum, .row_type = type});
  };
  save_new(features(RowType::kFloat32), run_of(RowType::kFloat32));
  if (both[1].type == RowType::kInt8)
    jobs::export_tables({.format = jobs::TableFormat::kInt8,
                         .from = run_of(RowType::kFloat32),
                         .out = run_of(RowType::kInt8),
                         .tables = {}},
                        [](const jobs::ConvertedArray&) {});
  else
    save_new(features(both[1].type), run_of(both[1].type));
  for (TypedRows& of : both)
    of.serving.emplace(ServingEmbedding::open(run_of(of.type), features(RowType::kFloat32)));
  const Mapping memory = filled_floats(static_cast<std::size_t>(rows * kStoredTables * kServingDim),
                                       0.01f, *make_inline_executor());

  const Table table({{"ids", "ids", 3},
                     {"row_type", "rows", -9},
                     {"row_bytes", "bytes", 10},
                     {"lookups_per_second", "M lookups/s", 12, 1, 1e-6},
                     {"limit_per_second", "limit", 10, 1, 1e-6},
                     {"of_limit", "of it", 10, 2},
                     {"times_float32", "times float32", 14, 2}});
  table.begin(json,
              fmt::format("{} tables x {} rows x {}, {} samples a call, one thread, in turns\n",
                          kStoredTables, rows, kServingDim, kSamples));
  for (const std::int64_t ids : {std::int64_t{1}, std::int64_t{20}}) {
    // So many lookups that the next pass finds few of its rows in a cache.
    const std::int64_t calls =
        std::max<std::int64_t>(1, std::min(kPassLookups / kStoredTables, rows) / (kSamples * ids));
    const ServingInputs inputs(ids == 1 ? ServingForm::kDense : ServingForm::kRagged,
                               {kStoredTables, rows, kSamples, calls, ids});
    LookupOutput output;
    for (TypedRows& of : both) of.seconds.clear(), of.limit = {};
    for (int repetition = 0; repetition <= kRepetitions; ++repetition)
      for (TypedRows& of : both) time_pass(of, inputs, memory, output, repetition > 0);
    for (const TypedRows& of : both) {
      const auto lookups = static_cast<double>(inputs.lookups());
      const double seconds = median(of.seconds), limit = of.limit.median();
      table.print(json,
                  {{"serving", "row types"},
                   {"row_type", to_string(of.type)},
                   {"rows", rows},
                   {"ids", ids},
                   {"lookups_per_second", lookups / seconds},
                   {"limit_per_second", lookups / limit},
                   {"times_float32", median(both[0].seconds) / seconds}},
                  {{"row_bytes", of.row_bytes}, {"of_limit", limit / seconds}});
    }
  }
}

}  // namespace

Command add_serving(CLI::App& app, CommonOptions& common) {
  CLI::App* command = app.add_subcommand("serving", "Times lookups of tables that are only read");
  auto options = std::make_shared<ServingBenchOptions>();
  add_number(*command, "--calls", options->calls, "Lookups of one sample", 10, 100'000'000);
  CLI::Option* directory = command->add_option(
      "--dir", options->directory, "Also opens a checkpoint, which is written there and removed");
  add_number(*command, "--bytes", options->bytes, "Rows of that checkpoint", std::int64_t{1} << 20,
             std::int64_t{1} << 40)
      ->needs(directory);
  command
      ->add_option("--row-type", options->row_type,
                   "Instead: lookups of rows of this type in turns with the same rows as float32, "
                   "of checkpoints of the size of --bytes as float32")
      ->check(CLI::IsMember({"float32", "bfloat16", "int8"}))
      ->needs(directory)
      ->capture_default_str();
  return CommonAdder(*command, common).json().runs([options, &common] {
    if (options->row_type != "float32") return run_row_types(*options, common.json);
    run_lookups(1, options->calls, common.json);
    run_lookups(1024, std::max<std::int64_t>(options->calls / 200, 20), common.json);
    if (!options->directory.empty()) run_opening(*options, common.json);
  });
}

}  // namespace embertable::bench
