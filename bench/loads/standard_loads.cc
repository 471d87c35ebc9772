#include "bench/loads/standard_loads.h"

#include <algorithm>
#include <vector>

namespace embertable::bench {
namespace {

/// Tables of one shape, each with a feature of its own.
struct StandardShape {
  const char* name;
  const char* description;
  std::int32_t tables;
  std::int64_t rows;
  std::int32_t dim;
  std::int32_t samples;
  std::int32_t max_ids;
  double zipf_exponent;
  std::int32_t batches;
};

// python/frameworks/workload_ids.py has the same table.
constexpr StandardShape kShapes[] = {
    {"W1", "one id a sample, many tables", 26, 1'000'000, 64, 2048, 1, 1.05, 96},
    {"W2", "20 ids a sample on average", 8, 4'000'000, 32, 2048, 39, 1.05, 20},
    {"W3", "one big table, ids spread evenly", 1, 40'000'000, 64, 8192, 19, 0, 64},
    {"W4", "tiny tables that stay in cache", 64, 1000, 16, 4096, 1, 1.05, 40},
    {"W5", "wide rows", 4, 1'000'000, 256, 2048, 19, 1.05, 40},
    {"W6", "few rows take most ids", 8, 4'000'000, 64, 1024, 99, 1.2, 16},
};

Load load_of(const StandardShape& shape) {
  Load load;
  load.name = shape.name;
  load.description = shape.description;
  load.samples = shape.samples;
  load.batches = shape.batches;
  load.seed = 1234 + static_cast<std::uint64_t>(shape.tables * 7 + shape.dim);
  for (std::int32_t t = 0; t < shape.tables; ++t) {
    load.tables.push_back({.rows = shape.rows, .dim = shape.dim});
    load.features.push_back({.table = static_cast<std::size_t>(t),
                             .max_ids = shape.max_ids,
                             .zipf_exponent = shape.zipf_exponent});
  }
  return load;
}

}  // namespace

std::span<const Load> standard_loads() {
  static const std::vector<Load> all = [] {
    std::vector<Load> loads;
    for (const StandardShape& shape : kShapes) loads.push_back(load_of(shape));
    return loads;
  }();
  return all;
}

const Load& find_standard_load(std::string_view name) {
  return *std::ranges::find(standard_loads(), name, &Load::name);
}

}  // namespace embertable::bench
