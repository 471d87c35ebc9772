#include "bench/others/serving.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "bench/loads/random.h"
#include "embertable/embertable.h"

namespace embertable::bench {
namespace {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

/// Number of different inputs; calls go through them again and again.
constexpr std::int64_t kInputs = 1024;

/// How the ids of a lookup are given. All forms name one row for each sample and feature.
enum class ServingForm : std::uint8_t { kDense, kSparseSafe, kSparseFast, kRagged };

/// The standard workload of serving has a feature for each of 26 tables of 1,000 rows of 64 floats.
constexpr std::int64_t kServingTables = 26;
constexpr std::int64_t kServingRows = 1000;
constexpr std::int32_t kServingDim = 64;

const char* to_string(ServingForm form) {
  switch (form) {
    case ServingForm::kDense:
      return "dense";
    case ServingForm::kSparseSafe:
      return "sparse, safe";
    case ServingForm::kSparseFast:
      return "sparse, fast";
    case ServingForm::kRagged:
      return "ragged";
  }
  return "";
}

/// Makes a feature for each table, in a tuple.
Nested<FeatureConfig> serving_features(ServingForm form, std::int64_t rows, std::int64_t tables,
                                       std::int32_t dim) {
  std::vector<FeatureConfig> features;
  for (std::int64_t t = 0; t < tables; ++t) {
    TableConfig table;
    table.vocabulary_size = rows;
    table.dim = dim;
    table.name = "t" + std::to_string(t);
    features.emplace_back().table = make_table(std::move(table));
    features.back().validate_weights_and_indices = form != ServingForm::kSparseFast;
  }
  Structure structure = Structure::tuple(std::vector<Structure>(features.size()));
  return {std::move(structure), std::move(features)};
}

/// Inputs of many calls, with uniform random ids.
class ServingInputs {
 public:
  ServingInputs(ServingForm form, const Structure& structure, std::int64_t rows,
                std::int64_t samples, std::int64_t calls)
      : features_(structure.num_leaves()), samples_(samples) {
    Random random(1);
    for (std::int64_t i = 0; i < calls * features_ * samples; ++i)
      ids_.push_back(static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(rows))));
    for (std::int64_t s = 0; s < samples; ++s) indices_.insert(indices_.end(), {s, 0});
    for (std::int64_t s = 0; s <= samples; ++s) splits_.push_back(s);
    for (std::int64_t call = 0; call < calls; ++call) {
      std::vector<FeatureIds> leaves;
      for (std::int64_t f = 0; f < features_; ++f) {
        const std::span<const std::int64_t> own(ids_.data() + (call * features_ + f) * samples,
                                                static_cast<std::size_t>(samples));
        if (form == ServingForm::kDense)
          leaves.push_back(DenseIds{own, {}});
        else if (form == ServingForm::kRagged)
          leaves.push_back(RaggedIds{splits_, own});
        else
          leaves.push_back(SparseIds{indices_, own, {samples, 1}});
      }
      batches_.push_back({Nested<FeatureIds>(structure, std::move(leaves)), {}});
    }
  }
  ServingInputs(const ServingInputs&) = delete;
  ServingInputs& operator=(const ServingInputs&) = delete;

  const Batch& operator[](std::int64_t call) const {
    return batches_[static_cast<std::size_t>(call) % batches_.size()];
  }

  /// The ids of one call, [features, samples].
  const std::int64_t* ids(std::int64_t call) const {
    return ids_.data() + call % std::ssize(batches_) * features_ * samples_;
  }

 private:
  std::int64_t features_, samples_;
  std::vector<std::int64_t> ids_;      ///< [calls, features, samples]
  std::vector<std::int64_t> indices_;  ///< [samples, 2], shared by sparse inputs
  std::vector<std::int64_t> splits_;   ///< [samples + 1], shared by ragged inputs
  std::vector<Batch> batches_;
};

/// The times of one way of looking up, in microseconds.
struct Timing {
  std::string form, call;
  double p50 = 0, p99 = 0, p999 = 0, mean = 0;
};

/// Times each call for itself, after a tenth of them that do not count.
template <class Call>
Timing time_calls(std::string form, std::string name, std::int64_t calls, Call call) {
  std::vector<double> took;
  took.reserve(calls);
  for (std::int64_t i = -calls / 10; i < calls; ++i) {
    const Clock::time_point begin = Clock::now();
    call(std::abs(i));
    const std::chrono::duration<double, std::micro> micros = Clock::now() - begin;
    if (i >= 0) took.push_back(micros.count());
  }
  double sum = 0;
  for (const double micros : took) sum += micros;
  std::ranges::sort(took);
  const auto share = [&](double q) { return took[q * static_cast<double>(took.size() - 1)]; };
  return {std::move(form), std::move(name), share(0.5),
          share(0.99),     share(0.999),    sum / static_cast<double>(took.size())};
}

/// Keeps the compiler from dropping a result that is never read.
void keep(const void* data) { asm volatile("" : : "r"(data) : "memory"); }

/// Times bare copies of the same rows.
Timing time_copies(const ServingInputs& inputs, const std::vector<TableView>& tables,
                   const std::string& form, std::int64_t samples, std::int64_t calls) {
  std::vector<float> out(tables.size() * static_cast<std::size_t>(samples * kServingDim));
  return time_calls(form, "bare copy of the rows", calls, [&](std::int64_t i) {
    const std::int64_t* id = inputs.ids(i);
    float* to = out.data();
    for (const TableView& table : tables)
      for (std::int64_t s = 0; s < samples; ++s, ++id, to += kServingDim)
        std::memcpy(to, table.data + *id * table.row_stride, kServingDim * sizeof(float));
    keep(out.data());
  });
}

std::vector<Timing> time_form(ServingForm form, std::int64_t samples, std::int64_t calls) {
  const auto features = serving_features(form, kServingRows, kServingTables, kServingDim);
  const ServingInputs inputs(form, features.structure(), kServingRows, samples,
                             samples > 1 ? 16 : kInputs);
  ServingEmbedding serving(features);
  const std::map<TablePtr, TableView> tables = serving.embedding_tables();
  LookupOutput output;
  std::vector<Timing> timings;
  const auto time = [&](const char* name, auto call) {
    timings.push_back(time_calls(to_string(form), name, calls, call));
  };
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
  for (const FeatureConfig& feature : features.leaves()) views.push_back(tables.at(feature.table));
  timings.push_back(time_copies(inputs, views, to_string(form), samples, calls));
  return timings;
}

std::string lookups(std::int64_t samples, std::int64_t calls, bool json) {
  std::string text;
  if (!json)
    text = fmt::format(
        "{} sample{} a call, {} features of {} tables x {} rows x {}, {} calls\n"
        "  {:<13} {:<32} {:>9} {:>9} {:>9} {:>9}  microseconds\n",
        samples, samples == 1 ? "" : "s", kServingTables, kServingTables, kServingRows, kServingDim,
        calls, "ids", "call", "p50", "p99", "p99.9", "mean");
  for (const ServingForm form : {ServingForm::kDense, ServingForm::kSparseSafe,
                                 ServingForm::kSparseFast, ServingForm::kRagged})
    for (const Timing& t : time_form(form, samples, calls)) {
      if (json) {
        text += Json{{"serving", "lookup"}, {"samples", samples}, {"calls", calls},
                     {"ids", t.form},       {"call", t.call},     {"p50_us", t.p50},
                     {"p99_us", t.p99},     {"p999_us", t.p999},  {"mean_us", t.mean}}
                    .dump() +
                "\n";
      } else {
        text += fmt::format("  {:<13} {:<32} {:9.2f} {:9.2f} {:9.2f} {:9.2f}\n", t.form, t.call,
                            t.p50, t.p99, t.p999, t.mean);
      }
    }
  return text;
}

double milliseconds_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

/// Opens a checkpoint in one way and looks one row of each table up.
std::string open_once(const std::filesystem::path& run, const Nested<FeatureConfig>& features,
                      const ServingOptions& options, const std::string& way, bool json) {
  const ServingInputs inputs(ServingForm::kDense, features.structure(),
                             features[0].table->vocabulary_size, 1, 1);
  LookupOutput output;
  const Clock::time_point begin = Clock::now();
  ServingEmbedding serving = ServingEmbedding::open(run, features, options);
  const double opened = milliseconds_since(begin);
  serving.embedding_lookup(inputs[0], output);
  const double looked_up = milliseconds_since(begin);
  if (json)
    return Json{{"serving", "open"},
                {"way", way},
                {"open_ms", opened},
                {"first_lookup_ms", looked_up}}
               .dump() +
           "\n";
  return fmt::format("  {:<16} {:10.2f} {:14.2f}\n", way, opened, looked_up);
}

std::string opening(const ServingBenchOptions& options, bool json) {
  constexpr std::int64_t kTables = 4;
  const std::int64_t rows =
      options.bytes / kTables / kServingDim / static_cast<std::int64_t>(sizeof(float));
  Nested<FeatureConfig> features =
      serving_features(ServingForm::kDense, rows, kTables, kServingDim);
  for (std::int64_t t = 0; t < kTables; ++t) {
    TableConfig zeros = *features[t].table;
    zeros.initializer = Initializer::zeros();
    features[t].table = make_table(std::move(zeros));
  }
  const std::filesystem::path run = options.directory / "embertable-bench-serving";
  std::filesystem::remove_all(run);
  {
    Embedding plain(features, {}, nullptr);
    plain.build();
    plain.save(run);
  }
  std::string text;
  if (!json)
    text = fmt::format(
        "a checkpoint of {} tables x {} rows x {}, {:.2f} GiB, in {}\n  {:<16} {:>10} {:>14}  "
        "milliseconds\n",
        kTables, rows, kServingDim, static_cast<double>(options.bytes) / (1 << 30), run.string(),
        "", "open", "first lookup");
  const auto open = [&](OpenTables tables, Checks checks, const char* way) {
    text += open_once(run, features, {.tables = tables, .checks = checks}, way, json);
  };
  open(OpenTables::kMap, Checks::kLazy, "map, lazy");
  open(OpenTables::kMap, Checks::kNone, "map, none");
  open(OpenTables::kMap, Checks::kFull, "map, full");
  open(OpenTables::kLoad, Checks::kFull, "load, full");
  open(OpenTables::kLoad, Checks::kNone, "load, none");
  std::filesystem::remove_all(run);
  return text;
}

}  // namespace

std::string run_serving(const ServingBenchOptions& options, bool json) {
  std::string text = lookups(1, options.calls, json);
  text += lookups(1024, std::max<std::int64_t>(options.calls / 200, 20), json);
  if (!options.directory.empty()) text += opening(options, json);
  return text;
}

}  // namespace embertable::bench
