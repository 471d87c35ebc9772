#include "bench/loads/memory_need.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <stdexcept>

#include "bench/loads/load_data.h"
#include "bench/machine/machine.h"

namespace embertable::bench {
namespace {

/// Share of the free memory that a load may take.
constexpr double kFreeShare = 0.8;

/// Bytes that the program and its threads take without a load.
constexpr std::size_t kProcessBytes = std::size_t{64} << 20;

/// Minimum number of rows of tables that are made smaller.
constexpr std::int64_t kLeastRows = 1000;

/// Returns the bytes of ids, weights and named rows, splits, and of the engine's arguments for each
/// feature.
std::size_t bytes_of_batch(const Load& load) {
  std::size_t bytes = 0;
  for (const LoadFeature& feature : load.features) {
    const auto ids = static_cast<std::size_t>(feature.min_ids + feature.max_ids) * load.samples / 2;
    bytes += ids * 20 + static_cast<std::size_t>(load.samples) * 8 + 512;
  }
  return bytes * load.replicas;
}

}  // namespace

std::size_t bytes_for(const Load& load, const LoadCopies& copies) {
  const std::size_t outputs = load.output_floats() * sizeof(float), batch = bytes_of_batch(load);
  const std::size_t gradients = std::max(2 * outputs, kGradientBytes + outputs);
  const std::size_t process = kProcessBytes + batch * load.batches * copies.batches + gradients +
                              2 * outputs   // activations
                              + 2 * batch;  // the engine's plan and entries
  std::size_t tables = 0;
  for (const LoadTable& table : load.tables) tables += table.rows * table.record_bytes();
  return tables * copies.tables + process * copies.processes;
}

std::string memory_needed(std::size_t bytes, std::size_t free_bytes) {
  return fmt::format("needs {:.1f} GB, {:.1f} GB are free", static_cast<double>(bytes) * 1e-9,
                     static_cast<double>(free_bytes) * 1e-9);
}

bool fits(std::size_t bytes, std::size_t free_bytes) {
  return free_bytes == 0 ||
         static_cast<double>(bytes) <= kFreeShare * static_cast<double>(free_bytes);
}

void require_memory(const Load& load, const LoadCopies& copies, std::size_t free_bytes) {
  const std::size_t bytes = bytes_for(load, copies);
  if (fits(bytes, free_bytes)) return;
  throw std::runtime_error(fmt::format("{}: {}, of which {:.0f} % may be taken", load.name,
                                       memory_needed(bytes, free_bytes), kFreeShare * 100));
}

bool make_fit(Load& load, const LoadCopies& copies, std::size_t free_bytes) {
  bool smaller = false;
  while (!fits(bytes_for(load, copies), free_bytes)) {
    bool halved = false;
    for (LoadTable& table : load.tables) {
      if (table.rows < 2 * kLeastRows) continue;
      table.rows /= 2;
      halved = true;
    }
    if (!halved) require_memory(load, copies, free_bytes);
    smaller = true;
  }
  return smaller;
}

void make_fit_and_say(Load& load, const LoadCopies& copies, std::size_t free_bytes) {
  if (make_fit(load, copies, free_bytes))
    std::fprintf(stderr, "%s: with %lld rows a table, which fit into the free memory\n",
                 load.name.c_str(), static_cast<long long>(load.tables.front().rows));
}

Load sized_load(Load standard, std::int64_t rows, std::int32_t batches, const LoadCopies& copies) {
  if (batches > 0) standard.batches = batches;
  const std::size_t free_bytes = available_memory_bytes();
  if (rows > 0) {
    for (LoadTable& table : standard.tables) table.rows = rows;
    require_memory(standard, copies, free_bytes);
  } else {
    make_fit(standard, copies, free_bytes);
  }
  return standard;
}

}  // namespace embertable::bench
