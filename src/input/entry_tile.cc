#include "input/entry_tile.h"

#include <algorithm>

#include "base/read_once.h"
#include "input/denominator.h"
#include "input/feature_reader.h"
#include "kernels/narrow.h"

namespace embertable::input {
namespace {

/// Row number that marks an entry whose id is outside the table.
template <class Index>
inline constexpr Index kOutside = static_cast<Index>(-1);

/// Copies a run again, marks the ids that are outside the table, and returns the place of the first
/// one; count if another thread has changed all of them.
template <class Int, class Index>
std::int64_t mark_outsiders(const Int* ids, std::int64_t count, std::int64_t vocabulary_size,
                            Index* row) {
  std::int64_t first = count;
  for (std::int64_t i = count - 1; i >= 0; --i) {
    const std::int64_t id = read_once(ids[i]);
    const bool inside = id >= 0 && id < vocabulary_size;
    row[i] = inside ? static_cast<Index>(id) : kOutside<Index>;
    if (!inside) first = i;
  }
  return first;
}

/// Returns false if a weight is not 1.
template <class Float>
bool copy_weights(const Float* from, std::int64_t count, float* to) {
  std::int64_t others = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    to[i] = static_cast<float>(from[i]);
    others += to[i] != 1.0f;
  }
  return others == 0;
}

bool copy_weights(const EntryCopy& copy, std::int64_t first, std::int64_t count, std::int64_t to) {
  const void* const from = copy.weights.data();
  return copy.weights.is_double()
             ? copy_weights(static_cast<const double*>(from) + first, count, copy.weight + to)
             : copy_weights(static_cast<const float*>(from) + first, count, copy.weight + to);
}

template <class Int, class Index>
std::int64_t copy_ids(const EntryCopy& copy, std::int64_t first, std::int64_t count,
                      std::int64_t to, SimdLevel level) {
  const Int* const ids = static_cast<const Int*>(copy.ids.data()) + first;
  Index* const row = copy.plan.row.as<Index>() + to;
  if (narrow(Narrow<Int, Index>{ids, count, copy.spec->vocabulary_size, row}, level)) return -1;
  const std::int64_t bad = mark_outsiders(ids, count, copy.spec->vocabulary_size, row);
  return bad == count ? -1 : first + bad;
}

/// Returns the first of the ids outside the table, or -1.
std::int64_t copy_ids(const EntryCopy& copy, std::int64_t first, std::int64_t count,
                      std::int64_t to, SimdLevel level) {
  const auto run = copy.ids.is_int64()
                       ? (copy.plan.row.wide ? copy_ids<std::int64_t, std::uint64_t>
                                             : copy_ids<std::int64_t, std::uint32_t>)
                       : (copy.plan.row.wide ? copy_ids<std::int32_t, std::uint64_t>
                                             : copy_ids<std::int32_t, std::uint32_t>);
  return run(copy, first, count, to, level);
}

/// Removes the marked entries of a tile without leaving gaps; splits follow. Returns the number of
/// kept entries.
template <class Index>
std::int64_t close_up(const EntryCopy& copy, const EntryTile& tile) {
  Index* const row = copy.plan.row.as<Index>();
  std::int64_t to = tile.begin;
  std::int64_t from = tile.begin;
  for (std::int64_t output = tile.first; output < tile.last; ++output) {
    const bool is_last = output + 1 == tile.last;
    const std::int64_t end = is_last ? tile.begin + tile.kept : copy.split[output + 1];
    copy.split[output] = to;
    for (; from < end; ++from) {
      if (row[from] == kOutside<Index>) continue;
      row[to] = row[from];
      if (copy.weighted) copy.weight[to] = copy.weight[from];
      ++to;
    }
  }
  return to - tile.begin;
}

}  // namespace

EntryWriter::EntryWriter(const EntryCopy& copy, EntryTile& tile, std::int64_t begin,
                         SimdLevel level)
    : copy_(copy), tile_(tile), level_(level) {
  tile_.begin = begin;
}

void EntryWriter::copy_run() {
  if (run_count_ == 0) return;
  const std::int64_t to = tile_.begin + copied_;
  const std::int64_t bad = copy_ids(copy_, run_first_, run_count_, to, level_);
  if (bad >= 0 && tile_.bad_entry < 0) tile_.bad_entry = bad;
  if (copy_.weighted && !copy_weights(copy_, run_first_, run_count_, to))
    tile_.plain_weights = false;
  copied_ += run_count_;
  run_count_ = 0;
}

void EntryWriter::finish(std::int64_t tile_index, bool one_hot) {
  copy_run();
  tile_.kept = copied_;
  tile_.one_hot = one_hot;
  tile_.split_written = !one_hot;
  if (tile_.bad_entry >= 0) {
    if (!copy_.spec->drop_out_of_range) return;
    drop_outsiders();
  }
  if (tile_.split_written) tile_.one_hot = tile_.kept == tile_.outputs() && splits_rise_by_1();
  if (!tile_.one_hot) {
    const std::int64_t* const split = copy_.split;
    std::int64_t empty = split[tile_.last - 1] == tile_.begin + tile_.kept;
    for (std::int64_t i = tile_.first; i + 1 < tile_.last; ++i) empty += split[i + 1] == split[i];
    tile_.empty = empty;
  }
  if (copy_.combiner != Combiner::kSum) write_denominators();
  if (copy_.buckets > 0) count_tile(copy_, tile_, tile_index, level_);
}

void EntryWriter::drop_outsiders() {
  if (!tile_.split_written) write_one_hot_splits(copy_, tile_);
  const std::int64_t stay = copy_.plan.row.wide ? close_up<std::uint64_t>(copy_, tile_)
                                                : close_up<std::uint32_t>(copy_, tile_);
  tile_.dropped = tile_.kept - stay;
  tile_.kept = stay;
  tile_.bad_entry = -1;
  if (copy_.weighted) {
    const float* const weight = copy_.weight + tile_.begin;
    tile_.plain_weights = std::all_of(weight, weight + stay, [](float w) { return w == 1.0f; });
  }
}

bool EntryWriter::splits_rise_by_1() const {
  std::int64_t i = tile_.first;
  while (i < tile_.last && copy_.split[i] == tile_.begin + (i - tile_.first)) ++i;
  return i == tile_.last;
}

void EntryWriter::write_denominators() {
  if (tile_.one_hot && tile_.plain_weights) return;
  if (!tile_.split_written) write_one_hot_splits(copy_, tile_);
  const std::int64_t* const split = copy_.split;
  bool plain = true;
  std::int64_t begin = tile_.begin;
  for (std::int64_t i = tile_.first; i < tile_.last; ++i) {
    const std::int64_t end = i + 1 == tile_.last ? tile_.begin + tile_.kept : split[i + 1];
    const float* const weight = copy_.weighted ? copy_.weight + begin : nullptr;
    const float denominator = denominator_of_entries(weight, end - begin, copy_.combiner);
    copy_.denominator[i] = denominator;
    plain &= denominator == 1.0f;
    begin = end;
  }
  tile_.plain_denominators = plain;
  tile_.zero_denominators =
      copy_.weighted && has_zero({copy_.denominator + tile_.first, copy_.denominator + tile_.last});
  tile_.denominator_written = true;
}

void count_tile(const EntryCopy& copy, const EntryTile& tile, std::int64_t tile_index,
                SimdLevel level) {
  const LookupPlan& plan = copy.plan;
  std::uint32_t* const counts = plan.counts.data() + tile_index * plan.counts_stride;
  plan.visit_rows([&]<class Index>(const Index* row) {
    count_buckets(CountBuckets<Index>{row + tile.begin, tile.kept, copy.buckets, counts}, level);
  });
  std::fill(counts + copy.buckets, counts + plan.counts_stride, 0);
}

void write_one_hot_splits(const EntryCopy& copy, EntryTile& tile) {
  for (std::int64_t i = tile.first; i < tile.last; ++i) {
    copy.split[i] = tile.begin + (i - tile.first);
  }
  tile.split_written = true;
}

}  // namespace embertable::input
