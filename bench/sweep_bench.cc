#include "bench/sweep_bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <vector>

#include "bench/load_bench.h"
#include "bench/load_memory.h"
#include "bench/memory.h"
#include "bench/sweep_plot.h"

namespace embertable::bench {
namespace {

/// What a sweep varies; the middle load is that of the defaults.
struct Shape {
  std::int64_t rows = 500'000;
  std::int32_t dim = 64;
  std::int32_t ids = 10;  ///< of every sample
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
         s.rows =
             std::max<std::int64_t>(s.rows * 8 / s.tables, 1);  // as many rows and lookups in all
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
  load.seed = 99;
  const std::int64_t ids = std::int64_t{shape.samples} * shape.ids * shape.tables;
  // Enough batches that none is found in a cache when it comes again, and few enough for memory.
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

std::string columns(const Factor& factor, double value, int threads, const Shape& s) {
  return fmt::format("{},{:g},{},{},{},{},{},{},{:g}", factor.name, value, threads, s.tables,
                     s.rows, s.dim, s.ids, s.samples, s.zipf);
}

std::string to_json(const SweepPoint& point, const Shape& shape, const LoadResult& result) {
  const auto lookups = static_cast<double>(result.lookups);
  nlohmann::ordered_json out;
  out["factor"] = point.factor;
  out["value"] = point.value;
  out["threads"] = point.threads;
  out["tables"] = shape.tables;
  out["rows"] = shape.rows;
  out["dim"] = shape.dim;
  out["ids"] = shape.ids;
  out["samples"] = shape.samples;
  out["zipf"] = shape.zipf;
  out["step"] = point.rate;
  out["step_limit_all_bytes"] = point.limit;
  out["of_limit"] = result.of_limit();
  out["forward_ns"] = result.seconds.forward / lookups * 1e9;
  out["backward_ns"] = result.seconds.backward / lookups * 1e9;
  out["other_load"] = result.other_load;
  return out.dump();
}

std::string to_text(const SweepPoint& point, const LoadResult& result) {
  return fmt::format("{:<14} {:>10g}  {} threads: {:8.1f} of {:8.1f} million lookups/s, {:.2f}",
                     point.factor, point.value, point.threads, point.rate * 1e-6,
                     point.limit * 1e-6, result.of_limit());
}

/// A sweep under way: its files and what was measured.
class Sweep {
 public:
  explicit Sweep(const SweepOptions& options) : options_(options), csv_(options.csv) {}

  void measure(const Factor& factor, double value) {
    const Shape shape = shape_of(factor, value);
    const Load load = load_of(shape, options_);
    for (const int threads : options_.threads) measure(factor, value, threads, shape, load);
  }

  /// Of the factor's values.
  std::size_t most_bytes(const Factor& factor) const {
    std::size_t most = 0;
    for (const double value : values(factor))
      most = std::max(most, bytes_for(load_of(shape_of(factor, value), options_)));
    return most;
  }

  const std::vector<double>& values(const Factor& factor) const {
    return options_.quick ? factor.quick : factor.values;
  }

  void draw() const {
    if (options_.svg.empty() || points_.empty()) return;
    std::ofstream file(options_.svg);
    file << plot_sweep(points_) << std::flush;
    if (!file) throw std::runtime_error("'" + options_.svg + "' cannot be written");
  }

 private:
  Shape shape_of(const Factor& factor, double value) const {
    Shape shape;
    if (options_.quick) shape.rows = 100'000;
    if (options_.rows > 0) shape.rows = options_.rows;
    factor.set(shape, value);
    return shape;
  }

  void measure(const Factor& factor, double value, int threads, const Shape& shape,
               const Load& load) {
    const std::string name = columns(factor, value, threads, shape);
    const std::size_t bytes = bytes_for(load), free_bytes = available_memory_bytes();
    if (!fits(bytes, free_bytes)) {
      std::string needed = memory_needed(bytes, free_bytes);
      std::fprintf(stderr, "%s %g, %d threads: not run: %s\n", factor.name, value, threads,
                   needed.c_str());
      std::ranges::replace(needed, ',', ';');  // a column
      csv_.line(fmt::format("{},,,,,,,{}", name, needed));
      return;
    }
    const LoadResult result = run_load(load, threads, options_.repetitions);
    const auto lookups = static_cast<double>(result.lookups);
    const SweepPoint& point = points_.emplace_back(
        SweepPoint{factor.name, value, threads, result.rate(), lookups / result.bare.step()});
    csv_.line(fmt::format("{},{:.0f},{:.0f},{:.3f},{:.2f},{:.2f},{:.2f},", name, point.rate,
                          point.limit, result.of_limit(), result.seconds.forward / lookups * 1e9,
                          result.seconds.backward / lookups * 1e9, result.other_load));
    std::puts((options_.json ? to_json(point, shape, result) : to_text(point, result)).c_str());
    std::fflush(stdout);
  }

  const SweepOptions& options_;
  CsvFile csv_;
  std::vector<SweepPoint> points_;
};

}  // namespace

std::vector<std::string> sweep_factors() {
  std::vector<std::string> names;
  for (const Factor& factor : factors()) names.emplace_back(factor.name);
  return names;
}

void run_sweep(const SweepOptions& options) {
  if (options.rows > 0 && options.factor == "rows")
    throw std::invalid_argument("--rows: the factor 'rows' has rows of its own");
  Sweep sweep(options);
  std::vector<Factor> chosen;
  for (const Factor& factor : factors())
    if (options.factor.empty() || options.factor == factor.name) chosen.push_back(factor);
  std::size_t most = 0;
  for (const Factor& factor : chosen) most = std::max(most, sweep.most_bytes(factor));
  if (!options.json)
    std::printf("the largest %s\n", memory_needed(most, available_memory_bytes()).c_str());
  for (const Factor& factor : chosen)
    for (const double value : sweep.values(factor)) sweep.measure(factor, value);
  sweep.draw();
}

}  // namespace embertable::bench
