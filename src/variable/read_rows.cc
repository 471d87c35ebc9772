#include <algorithm>
#include <atomic>
#include <cstring>

#include "base/float_environment.h"
#include "kernels/gather/gather.h"
#include "kernels/level.h"
#include "tensor/ranges.h"
#include "variable/row_addresses.h"

namespace embertable {
namespace {

/// Number of row numbers that are made at once: they stay in the first-level cache beside the rows.
constexpr std::int64_t kReadChunk = 1024;

/// Reads of at least this many bytes bypass the cache (non-temporal stores), since little of them
/// would be left in a core's share of the last cache.
constexpr std::int64_t kStreamedBytes = 64 << 20;

/// Rows of whole floats at addresses of floats. The engine's gather copies them, whatever they
/// hold.
class FloatRows {
 public:
  explicit FloatRows(const ReadRows& args)
      : args_(args),
        level_(simd_level()),
        streams_(args.indices.count >= kStreamedBytes / args.row_bytes) {}

  static bool fits(const ReadRows& args) {
    const auto bits = reinterpret_cast<std::uintptr_t>(args.addresses.base()) |
                      reinterpret_cast<std::uintptr_t>(args.out) |
                      static_cast<std::uintptr_t>(args.addresses.unit() | args.row_bytes);
    return bits % sizeof(float) == 0;
  }

  bool read(std::int64_t first, std::int64_t last) const {
    std::uint64_t numbers[2][kReadChunk];
    bool all = true;
    const GatheredRows rows = {
        .table = reinterpret_cast<const float*>(args_.addresses.base()),
        .stride = args_.addresses.unit() / static_cast<std::int64_t>(sizeof(float)),
        .dim = args_.row_bytes / static_cast<std::int64_t>(sizeof(float))};
    std::int64_t count = fill(first, last, numbers[0], all);
    for (int side = 0; count > 0; side = 1 - side) {
      const std::int64_t next = fill(first + count, last, numbers[1 - side], all);
      gather(Gather<std::uint64_t>{.rows = rows,
                                   .row = numbers[side],
                                   .out = reinterpret_cast<float*>(args_.out +
                                                                   first * args_.row_bytes),
                                   .first = 0,
                                   .last = count,
                                   .next = {rows, numbers[1 - side], true, next},
                                   .streams = streams_},
             level_);
      first += count;
      count = next;
    }
    return all;
  }

 private:
  std::int64_t fill(std::int64_t first, std::int64_t last, std::uint64_t* numbers,
                    bool& all) const {
    const std::int64_t count = std::min(kReadChunk, last - first);
    all = args_.addresses.numbers(args_.indices, first, count, numbers) && all;
    return count;
  }

  const ReadRows& args_;
  SimdLevel level_;
  bool streams_;
};

bool copy_rows(const ReadRows& args, std::int64_t first, std::int64_t last) {
  std::uint64_t numbers[kReadChunk];
  bool all = true;
  for (; first < last; first += kReadChunk) {
    const std::int64_t count = std::min(kReadChunk, last - first);
    all = args.addresses.numbers(args.indices, first, count, numbers) && all;
    for (std::int64_t i = 0; i < count; ++i)
      std::memcpy(
          args.out + (first + i) * args.row_bytes,
          args.addresses.base() + static_cast<std::int64_t>(numbers[i]) * args.addresses.unit(),
          args.row_bytes);
  }
  return all;
}

}  // namespace

bool read_rows(const ReadRows& args) {
  if (args.row_bytes == 0 || args.indices.count == 0) return true;
  const bool floats = FloatRows::fits(args);
  const FloatRows rows(args);
  const auto read = [&](std::int64_t first, std::int64_t last) {
    const FloatEnvironment environment;
    return floats ? rows.read(first, last) : copy_rows(args, first, last);
  };
  const std::int64_t count = args.indices.count;
  const std::int64_t at_once =
      std::clamp<std::int64_t>(kGatheredBytes / args.row_bytes, 1, kGatheredRows);
  const std::int64_t items = (count + at_once - 1) / at_once;
  if (args.executor == nullptr || items == 1) return read(0, count);
  std::atomic<bool> all = true;
  args.executor->run(items, [&](const WorkItem& item) {
    if (!read(item.index * at_once, std::min(count, (item.index + 1) * at_once)))
      all.store(false, std::memory_order_relaxed);
  });
  return all;
}

}  // namespace embertable
