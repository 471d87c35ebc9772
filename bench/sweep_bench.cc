#include "bench/sweep_bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <stdexcept>
#include <vector>

#include "bench/load_bench.h"
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
         s.rows = s.rows * 8 / s.tables;  // as many rows and lookups in all
         s.samples = std::max(s.samples * 8 / s.tables, 16);
       }},
      {"zipf",
       {0, 0.4, 0.8, 1.0, 1.2, 1.4},
       {0, 0.8, 1.2},
       [](Shape& s, double value) { s.zipf = value; }},
  };
  return all;
}

Load load_of(const Shape& shape, bool quick) {
  Load load;
  load.samples = shape.samples;
  load.seed = 99;
  const std::int64_t ids = std::int64_t{shape.samples} * shape.ids * shape.tables;
  // Enough batches that none is found in a cache when it comes again, and few enough for memory.
  load.batches = static_cast<std::int32_t>(
      std::clamp<std::int64_t>((quick ? 400'000 : 4'000'000) / ids, 3, quick ? 50 : 400));
  for (std::int32_t t = 0; t < shape.tables; ++t) {
    load.tables.push_back({.rows = shape.rows, .dim = shape.dim});
    load.features.push_back({.table = static_cast<std::size_t>(t),
                             .min_ids = shape.ids,
                             .max_ids = shape.ids,
                             .zipf_exponent = shape.zipf});
  }
  return load;
}

void require_factor(const std::string& name) {
  std::string names;
  for (const Factor& factor : factors()) {
    if (name.empty() || name == factor.name) return;
    names += fmt::format("{}'{}'", names.empty() ? "" : ", ", factor.name);
  }
  throw std::invalid_argument("--factor '" + name + "' is none of " + names);
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

}  // namespace

void run_sweep(const SweepOptions& options) {
  require_factor(options.factor);
  CsvFile csv(options.csv);
  std::vector<SweepPoint> points;
  for (const Factor& factor : factors()) {
    if (!options.factor.empty() && options.factor != factor.name) continue;
    for (const double value : options.quick ? factor.quick : factor.values) {
      Shape shape;
      if (options.quick) shape.rows = 100'000;
      factor.set(shape, value);
      const Load load = load_of(shape, options.quick);
      for (const int threads : {1, 2}) {
        const std::string name = columns(factor, value, threads, shape);
        const std::size_t bytes = bytes_for(load), free = available_memory_bytes();
        if (free > 0 && static_cast<double>(bytes) > 0.9 * static_cast<double>(free)) {
          csv.line(fmt::format("{},,,,,,,needs {:.1f} GB of {:.1f} GB of free memory", name,
                               static_cast<double>(bytes) * 1e-9,
                               static_cast<double>(free) * 1e-9));
          continue;
        }
        const LoadResult result = run_load(load, threads, options.repetitions);
        const auto lookups = static_cast<double>(result.lookups);
        const double limit = lookups / result.bare.step();
        csv.line(fmt::format("{},{:.0f},{:.0f},{:.3f},{:.2f},{:.2f},{:.2f},", name, result.rate(),
                             limit, result.of_limit(), result.seconds.forward / lookups * 1e9,
                             result.seconds.backward / lookups * 1e9, result.other_load));
        points.push_back({factor.name, value, threads, result.rate(), limit});
        std::printf("%-14s %10g  %d threads: %8.1f of %8.1f million lookups/s, %.2f\n", factor.name,
                    value, threads, result.rate() * 1e-6, limit * 1e-6, result.of_limit());
        std::fflush(stdout);
      }
    }
  }
  if (options.svg.empty() || points.empty()) return;
  std::ofstream file(options.svg);
  file << plot_sweep(points) << std::flush;
  if (!file) throw std::runtime_error("'" + options.svg + "' cannot be written");
}

}  // namespace embertable::bench
