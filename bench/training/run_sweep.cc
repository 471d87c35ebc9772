#include "bench/training/run_sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <vector>

#include "bench/loads/memory_need.h"
#include "bench/machine/machine.h"
#include "bench/training/run_load.h"

namespace embertable::bench {
namespace {

/// The properties of a load that a sweep varies; the defaults make the middle load.
struct Shape {
  std::int64_t rows = 500'000;
  std::int32_t dim = 64;
  std::int32_t ids = 10;  ///< ids of every sample
  std::int32_t samples = 2048;
  std::int32_t tables = 8;
  double zipf = 1.05;
};

struct Factor {
  const char* name;
  std::vector<double> values, quick;
  void (*set)(Shape& shape, double value);
};

const std::vector<Factor>& factors() {
  static const std::vector<Factor> all = {
      {"rows",
       {1e3, 1e4, 1e5, 1e6, 1e7, 1e8},
       {1e3, 1e4, 1e5, 1e6},
       [](Shape& s, double value) {
         s.rows = static_cast<std::int64_t>(value);
         s.tables = 1, s.dim = 16, s.samples = 8192;  // so that the largest fits into memory
       }},
      {"dim",
       {8, 16, 32, 64, 128, 256, 512},
       {8, 32, 128},
       [](Shape& s, double value) { s.dim = static_cast<std::int32_t>(value); }},
      {"ids a sample",
       {1, 2, 5, 10, 20, 50, 100},
       {1, 10, 50},
       [](Shape& s, double value) { s.ids = static_cast<std::int32_t>(value); }},
      {"samples",
       {1, 16, 256, 1024, 4096, 16384, 65536},
       {1, 256, 4096},
       [](Shape& s, double value) { s.samples = static_cast<std::int32_t>(value); }},
      {"tables",
       {1, 4, 16, 64, 256, 1000},
       {1, 16, 64},
       [](Shape& s, double value) {
         s.tables = static_cast<std::int32_t>(value);
         s.rows = std::max<std::int64_t>(s.rows * 8 / s.tables,
                                         1);  // keeps the total of rows and lookups
         s.samples = std::max(s.samples * 8 / s.tables, 16);
       }},
      {"zipf",
       {0, 0.4, 0.8, 1.0, 1.2, 1.4},
       {0, 0.8, 1.2},
       [](Shape& s, double value) { s.zipf = value; }},
  };
  return all;
}

Load load_of(const Shape& shape, const SweepOptions& options) {
  Load load;
  load.samples = shape.samples;
  load.seed = 176;
  const std::int64_t ids = std::int64_t{shape.samples} * shape.ids * shape.tables;
  // There are enough batches that no cache still holds one when it comes again.
  const bool quick = options.quick;
  load.batches = static_cast<std::int32_t>(
      std::clamp<std::int64_t>((quick ? 400'000 : 4'000'000) / ids, 3, quick ? 50 : 400));
  if (options.batches > 0) load.batches = options.batches;
  for (std::int32_t t = 0; t < shape.tables; ++t) {
    load.tables.push_back({.rows = shape.rows, .dim = shape.dim});
    load.features.push_back({.table = static_cast<std::size_t>(t),
                             .min_ids = shape.ids,
                             .max_ids = shape.ids,
                             .zipf_exponent = shape.zipf});
  }
  return load;
}

class CsvFile {
 public:
  explicit CsvFile(const std::string& path) : path_(path), file_(path) {
    line(
        "factor,value,threads,tables,rows,dim,ids,samples,zipf,lookups_per_s,limit_all_bytes_per_s,"
        "of_limit,forward_ns,backward_ns,other_load,note");
  }
  void line(const std::string& text) {
    file_ << text << '\n' << std::flush;
    if (!file_) throw std::runtime_error("'" + path_ + "' cannot be written");
  }

 private:
  std::string path_;
  std::ofstream file_;
};

Shape shape_of(const Factor& factor, double value, const SweepOptions& options) {
  Shape shape;
  if (options.quick) shape.rows = 100'000;
  if (options.rows > 0) shape.rows = options.rows;
  factor.set(shape, value);
  return shape;
}

const std::vector<double>& values_of(const Factor& factor, const SweepOptions& options) {
  return options.quick ? factor.quick : factor.values;
}

/// One load of a sweep.
struct Point {
  const Factor& factor;
  double value;
  Shape shape;
  int threads;
};

std::string columns(const Point& p) {
  return fmt::format("{},{:g},{},{},{},{},{},{},{:g}", p.factor.name, p.value, p.threads,
                     p.shape.tables, p.shape.rows, p.shape.dim, p.shape.ids, p.shape.samples,
                     p.shape.zipf);
}

double ns_per_lookup(const LoadResult& result, double seconds) {
  return seconds / static_cast<double>(result.lookups) * 1e9;
}

std::string to_json(const Point& p, const LoadResult& result) {
  return nlohmann::ordered_json{
      {"factor", p.factor.name},
      {"value", p.value},
      {"threads", p.threads},
      {"tables", p.shape.tables},
      {"rows", p.shape.rows},
      {"dim", p.shape.dim},
      {"ids", p.shape.ids},
      {"samples", p.shape.samples},
      {"zipf", p.shape.zipf},
      {"step", result.rate()},
      {"step_limit_all_bytes", result.limit_rate()},
      {"of_limit", result.of_limit()},
      {"forward_ns", ns_per_lookup(result, result.seconds.stages.forward)},
      {"backward_ns", ns_per_lookup(result, result.seconds.stages.backward)},
      {"other_load", result.other_load}}
      .dump();
}

std::string to_text(const Point& p, const LoadResult& result) {
  return fmt::format("{:<14} {:>10g}  {} threads: {:8.1f} of {:8.1f} million lookups/s, {:.2f}",
                     p.factor.name, p.value, p.threads, result.rate() * 1e-6,
                     result.limit_rate() * 1e-6, result.of_limit());
}

/// Runs one load and writes its line; one that does not fit into the free memory gets a note.
void measure(const Point& point, const SweepOptions& options, CsvFile& csv) {
  const Load load = load_of(point.shape, options);
  const std::size_t bytes = bytes_for(load), free_bytes = available_memory_bytes();
  if (!fits(bytes, free_bytes)) {
    std::string needed = memory_needed(bytes, free_bytes);
    std::fprintf(stderr, "%s %g, %d threads: not run: %s\n", point.factor.name, point.value,
                 point.threads, needed.c_str());
    std::ranges::replace(needed, ',', ';');  // commas separate columns
    csv.line(fmt::format("{},,,,,,,{}", columns(point), needed));
    return;
  }
  const LoadResult result =
      run_load(load, point.threads, options.repetitions, Between::kNothing, false);
  csv.line(fmt::format("{},{:.0f},{:.0f},{:.3f},{:.2f},{:.2f},{:.2f},", columns(point),
                       result.rate(), result.limit_rate(), result.of_limit(),
                       ns_per_lookup(result, result.seconds.stages.forward),
                       ns_per_lookup(result, result.seconds.stages.backward), result.other_load));
  std::puts((options.json ? to_json(point, result) : to_text(point, result)).c_str());
  std::fflush(stdout);
}

}  // namespace

std::vector<std::string> sweep_factors() {
  std::vector<std::string> names;
  for (const Factor& factor : factors()) names.emplace_back(factor.name);
  return names;
}

void run_sweep(const SweepOptions& options) {
  if (options.rows > 0 && options.factor == "rows")
    throw std::invalid_argument("--rows: the factor 'rows' has rows of its own");
  CsvFile csv(options.csv);
  std::vector<Factor> chosen;
  for (const Factor& factor : factors())
    if (options.factor.empty() || options.factor == factor.name) chosen.push_back(factor);
  std::size_t most = 0;
  for (const Factor& factor : chosen)
    for (const double value : values_of(factor, options))
      most = std::max(most, bytes_for(load_of(shape_of(factor, value, options), options)));
  if (!options.json)
    std::printf("the largest %s\n", memory_needed(most, available_memory_bytes()).c_str());
  for (const Factor& factor : chosen)
    for (const double value : values_of(factor, options))
      for (const int threads : options.threads)
        measure({factor, value, shape_of(factor, value, options), threads}, options, csv);
}

}  // namespace embertable::bench
