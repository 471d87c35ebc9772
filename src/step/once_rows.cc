#include "step/once_rows.h"

#include <algorithm>

#include "kernels/stage_clock.h"
#include "step/bucket_policy.h"

namespace embertable {

void OnceRows::run(HostStep& step, Workers& workers) {
  list(step, workers.count());
  if (parts_.empty()) return;
  std::int64_t entries = 0, most_words = 0;
  for (const Search& search : searches_) {
    entries += search.entries;
    if (search.parts == 1) most_words = std::max(most_words, OnceFilter::words(search.bits));
  }
  // A table that is searched alone has less than 1.5 shares of all entries: three bytes for each.
  const auto own = step.memory.take<std::uint64_t>(most_words * workers.count());
  const auto region = [&](std::int64_t parts, auto body) {
    workers.run(parts, entries * 4, [&](const WorkItem& work) {
      StageLap lap;
      body(parts_[work.index], work.worker);
      lap.to(StepStage::kScatter);
    });
  };
  region(std::ssize(parts_), [&](const Part& part, std::int64_t worker) {
    part.search->parts == 1
        ? search_alone(*part.search, own.subspan(worker * most_words, most_words))
        : see(part);
  });
  if (shared_ == 0) return;
  region(shared_, [&](const Part& part, std::int64_t) { combine(part); });
  region(shared_, [&](const Part& part, std::int64_t) { set_apart(part); });
}

/// Lists tables, their tiles and the parts of the search, and takes memory for what they write.
void OnceRows::list(HostStep& step, std::int64_t workers) {
  searches_.clear();
  tiles_.clear();
  parts_.clear();
  std::int64_t all_entries = 0, all_tiles = 0;
  for (const TableRun& table : step.tables) {
    if (table.once_ranges) all_entries += table.entries();
    for (const FeatureRun& feature : table.features) all_tiles += feature.plan->tiles();
  }
  // Room for every table, so that a step in which another table is searched takes no memory. Parts
  // point to searches; they are fair shares of all workers, each rounded.
  searches_.reserve(step.tables.size());
  tiles_.reserve(all_tiles);
  parts_.reserve(workers + 2 * step.tables.size());
  for (const TableRun& table : step.tables) {
    if (!table.once_ranges) continue;
    Search& search = searches_.emplace_back(Search{.table = &table, .entries = table.entries()});
    search.first_tile = std::ssize(tiles_);
    std::int64_t before = 0;
    for (const FeatureRun& feature : table.features) {
      LookupPlan& plan = *feature.plan;
      plan.counts_stride = counts_stride_of(table.buckets + table.once_ranges.count);
      plan.counts = step.memory.take<std::uint32_t>(plan.tiles() * plan.counts_stride);
      plan.bucket = step.memory.take<std::uint16_t>(plan.row.size);
      for (std::int64_t tile = 0; tile < plan.tiles(); ++tile) {
        const std::int64_t first = plan.tile_begin(tile);
        tiles_.push_back({&plan, tile, first, plan.tile_begin(tile + 1) - first, before});
      }
      before += plan.row.size;
    }
    search.tiles = std::ssize(tiles_) - search.first_tile;
    search.parts = once_parts(search.entries, all_entries, workers);
    if (search.entries >= OnceNumbers::kMarked)
      search.parts = std::min(search.parts, kMostOnceFilters);
    search.bits = once_slot_bits(search.entries);
    if (search.parts > kMostOnceFilters)
      search.numbers = {step.memory.take<std::uint32_t>(std::int64_t{1} << search.bits),
                        search.bits};
    else if (search.parts > 1)
      search.filters =
          step.memory.take<std::uint64_t>(OnceFilter::words(search.bits) * search.parts);
  }
  for (const bool shared : {true, false}) {
    for (const Search& search : searches_)
      for (std::int64_t part = 0; part < search.parts && (search.parts > 1) == shared; ++part)
        parts_.push_back({&search, part});
    if (shared) shared_ = std::ssize(parts_);
  }
}

/// Calls visit(tile) for the entries of a part, in which its first and last tile may be shortened.
template <class Visit>
void OnceRows::for_each_entry(const Part& part, Visit visit) const {
  const Search& search = *part.search;
  const std::int64_t first = search.entries * part.part / search.parts,
                     last = search.entries * (part.part + 1) / search.parts;
  const auto tiles = std::span(tiles_).subspan(search.first_tile, search.tiles);
  const auto end_of = [](const Tile& tile) { return tile.before + tile.first + tile.count; };
  auto at = std::ranges::upper_bound(tiles, first, {}, end_of);
  for (; at != tiles.end() && at->before + at->first < last; ++at) {
    Tile tile = *at;
    const std::int64_t begin = tile.before + tile.first;
    tile.first = std::max(begin, first) - tile.before;
    tile.count = std::min(end_of(*at), last) - tile.before - tile.first;
    visit(tile);
  }
}

void OnceRows::search_alone(const Search& search, std::span<std::uint64_t> filter) const noexcept {
  Search mine = search;
  mine.filters = filter;
  see({&mine, 0});
  set_apart({&mine, 0});
}

/// Marks what the entries of a part name, or writes their numbers.
void OnceRows::see(const Part& part) const noexcept {
  const Search& search = *part.search;
  if (search.numbers) {
    return for_each_entry(part, [&](const Tile& tile) {
      tile.plan->visit_rows([&](const auto* row) { search.numbers.write(tile.numbered(row)); });
    });
  }
  const std::int64_t words = OnceFilter::words(search.bits);
  const auto mine = search.filters.subspan(part.part * words, words);
  std::ranges::fill(mine, std::uint64_t{0});
  const OnceFilter filter = {mine.data(), search.bits};
  for_each_entry(part, [&](const Tile& tile) {
    tile.plan->visit_rows([&]<class Index>(const Index* row) {
      see_rows<Index>({row + tile.first, tile.count, filter}, level_);
    });
  });
}

/// Joins a part of all filters in the first one, or marks the slots where entries do not find
/// themselves.
void OnceRows::combine(const Part& part) const noexcept {
  const Search& search = *part.search;
  if (search.numbers) {
    return for_each_entry(part, [&](const Tile& tile) {
      tile.plan->visit_rows([&](const auto* row) { search.numbers.mark(tile.numbered(row)); });
    });
  }
  const std::int64_t words = OnceFilter::words(search.bits);
  const std::int64_t first = words * part.part / search.parts,
                     last = words * (part.part + 1) / search.parts;
  for (std::int64_t of = 1; of < search.parts; ++of)
    join_filters({.from = search.filters.data() + of * words + first,
                  .to = search.filters.data() + first,
                  .count = last - first},
                 level_);
}

/// Writes bucket numbers and counts of a part.
void OnceRows::set_apart(const Part& part) const noexcept {
  const Search& search = *part.search;
  const auto buckets = static_cast<std::uint32_t>(search.table->buckets);
  const RowRanges ranges = search.table->once_ranges;
  const OnceFilter filter = {search.filters.data(), search.bits};
  const std::int64_t first = search.tiles * part.part / search.parts,
                     last = search.tiles * (part.part + 1) / search.parts;
  for (const Tile& tile : std::span(tiles_).subspan(search.first_tile + first, last - first)) {
    const LookupPlan& plan = *tile.plan;
    const std::span<std::uint32_t> counts =
        plan.counts.subspan(tile.tile * plan.counts_stride, plan.counts_stride);
    std::ranges::fill(counts, 0u);
    std::uint16_t* const bucket = plan.bucket.data() + tile.first;
    plan.visit_rows([&]<class Index>(const Index* row) {
      if (search.numbers) {
        search.numbers.set_apart(tile.numbered(row), buckets, ranges, bucket, counts.data());
      } else {
        set_once_apart<Index>(
            {row + tile.first, tile.count, filter, buckets, ranges, bucket, counts.data()}, level_);
      }
    });
  }
}

}  // namespace embertable
