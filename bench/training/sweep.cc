// embertable-bench sweep varies one factor at a time around a middle load.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/commands/commands.h"
#include "bench/commands/report.h"
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

Load load_of(const Shape& shape, bool quick, std::int32_t batches) {
  Load load;
  load.samples = shape.samples;
  load.seed = 176;
  const std::int64_t ids = std::int64_t{shape.samples} * shape.ids * shape.tables;
  // There are enough batches that no cache still holds one when it comes again.
  load.batches = static_cast<std::int32_t>(
      std::clamp<std::int64_t>((quick ? 400'000 : 4'000'000) / ids, 3, quick ? 50 : 400));
  if (batches > 0) load.batches = batches;
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

/// One load of a sweep.
struct Point {
  const char* factor;
  double value;
  Shape shape;
  Load load;
};

/// Runs one load and writes its line; one that does not fit into the free memory gets a note.
void measure_point(const Point& p, int threads, const CommonOptions& options, CsvFile& csv) {
  const Shape& shape = p.shape;
  const std::string columns =
      fmt::format("{},{:g},{},{},{},{},{},{},{:g}", p.factor, p.value, threads, shape.tables,
                  shape.rows, shape.dim, shape.ids, shape.samples, shape.zipf);
  const std::size_t bytes = bytes_for(p.load), free_bytes = available_memory_bytes();
  if (!fits(bytes, free_bytes)) {
    std::string needed = memory_needed(bytes, free_bytes);
    std::fprintf(stderr, "%s %g, %d threads: not run: %s\n", p.factor, p.value, threads,
                 needed.c_str());
    std::ranges::replace(needed, ',', ';');  // commas separate columns
    csv.line(fmt::format("{},,,,,,,{}", columns, needed));
    return;
  }
  const LoadResult result = run_load(p.load, threads, options.repetitions, {});
  const double rate = result.rate(result.seconds.step);
  const double limit_rate = result.rate(result.limits.step_all());
  const double forward = result.ns(result.seconds.stages.forward);
  const double backward = result.ns(result.seconds.stages.backward);
  csv.line(fmt::format("{},{:.0f},{:.0f},{:.3f},{:.2f},{:.2f},{:.2f},", columns, rate, limit_rate,
                       result.of_limit(), forward, backward, result.other_load));
  print(options.json,
        {{"factor", p.factor},
         {"value", p.value},
         {"threads", threads},
         {"tables", shape.tables},
         {"rows", shape.rows},
         {"dim", shape.dim},
         {"ids", shape.ids},
         {"samples", shape.samples},
         {"zipf", shape.zipf},
         {"step", rate},
         {"step_limit_all_bytes", limit_rate},
         {"of_limit", result.of_limit()},
         {"forward_ns", forward},
         {"backward_ns", backward},
         {"other_load", result.other_load}},
        fmt::format("{:<14} {:>10g}  {} threads: {:8.1f} of {:8.1f} million lookups/s, {:.2f}\n",
                    p.factor, p.value, threads, rate * 1e-6, limit_rate * 1e-6, result.of_limit()));
}

struct SweepOptions {
  std::string factor;  ///< only this one; empty: all
  bool quick = false;  ///< smaller and fewer values of each factor
  std::string csv;
};

/// Measures steps with one factor varied at a time around a middle load, with each number of
/// threads, and the limit for the same bytes. Throws std::runtime_error naming a file that cannot
/// be written, std::invalid_argument if rows are given although only the factor `rows` is varied.
void run_sweep(const SweepOptions& options, const CommonOptions& common) {
  if (common.rows > 0 && options.factor == "rows")
    throw std::invalid_argument("--rows: the factor 'rows' has rows of its own");
  CsvFile csv(options.csv);
  std::vector<Point> points;
  std::size_t most = 0;
  for (const Factor& factor : factors()) {
    if (!options.factor.empty() && options.factor != factor.name) continue;
    for (const double value : options.quick ? factor.quick : factor.values) {
      Shape shape;
      if (options.quick) shape.rows = 100'000;
      if (common.rows > 0) shape.rows = common.rows;
      factor.set(shape, value);
      points.push_back({factor.name, value, shape, load_of(shape, options.quick, common.batches)});
      most = std::max(most, bytes_for(points.back().load));
    }
  }
  print_text(common.json, "the largest " + memory_needed(most, available_memory_bytes()) + "\n");
  for (const Point& point : points)
    for (const int threads : common.threads > 0 ? std::vector{common.threads} : std::vector{1, 2})
      measure_point(point, threads, common, csv);
}

}  // namespace

Command add_sweep(CLI::App& app, CommonOptions& common) {
  CLI::App* command =
      app.add_subcommand("sweep", "Varies rows, dim, ids, samples, tables and skew, one at a time");
  auto options = std::make_shared<SweepOptions>();
  std::vector<std::string> names;
  for (const Factor& factor : factors()) names.emplace_back(factor.name);
  command->add_option("--csv", options->csv, "File of the figures, overwritten")->required();
  command->add_option("--factor", options->factor, "Only this one, by its name in the CSV")
      ->check(CLI::IsMember(names))
      ->default_str("all");
  command->add_flag("--quick", options->quick, "Smaller and fewer values");
  return CommonAdder(*command, common)
      .threads("1 and 2")
      .repetitions(3)
      .json()
      .rows("500000; --quick: 100000; the factor 'rows' has its own")
      .batches("4000000 lookups of 3 to 400 batches; --quick: 400000 of 3 to 50")
      .runs([options, &common] { run_sweep(*options, common); });
}

}  // namespace embertable::bench
