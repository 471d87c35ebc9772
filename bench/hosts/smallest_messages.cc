#include "bench/hosts/smallest_messages.h"

#include <span>
#include <vector>

namespace embertable::bench {
namespace {

/// The owners of a table's rows: each host has a block, and the first ones have a row more where
/// the hosts do not divide the rows.
struct Blocks {
  Blocks(std::int64_t rows, std::int32_t hosts) : each(rows / hosts), longer(rows % hosts) {}

  std::int64_t rows_of(std::int64_t host) const { return each + (host < longer ? 1 : 0); }
  std::int64_t owner_of(std::int64_t row) const {
    const std::int64_t in_longer = longer * (each + 1);
    return row < in_longer ? row / (each + 1) : longer + (row - in_longer) / each;
  }

  std::int64_t each;
  std::int64_t longer;  ///< hosts with a row more
};

std::size_t number_bytes(std::int64_t numbers) {
  if (numbers <= std::int64_t{1} << 8) return 1;
  if (numbers <= std::int64_t{1} << 16) return 2;
  return numbers <= std::int64_t{1} << 32 ? 4 : 8;
}

}  // namespace

std::size_t smallest_message_bytes(const Load& load, const LoadBatch& batch) {
  std::size_t bytes = 0;
  for (std::int32_t host = 0; host < load.replicas; ++host) {
    const std::size_t features = load.features.size();
    const std::vector<std::vector<std::uint32_t>> named =
        named_rows(load, std::span(batch).subspan(host * features, features));
    for (std::size_t t = 0; t < load.tables.size(); ++t) {
      const Blocks blocks(load.tables[t].rows, load.replicas);
      const std::size_t row_bytes = static_cast<std::size_t>(load.tables[t].dim) * sizeof(float);
      for (const std::uint32_t row : named[t]) {
        const std::int64_t owner = blocks.owner_of(row);
        if (owner != host) bytes += number_bytes(blocks.rows_of(owner)) + 2 * row_bytes;
      }
    }
  }
  return bytes;
}

}  // namespace embertable::bench
