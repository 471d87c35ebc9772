#include "step/core_sums.h"

#include <cstring>
#include <numeric>
#include <utility>

#include "step/backward.h"

namespace embertable {
namespace {

/// The rule for rows that other hosts own: stores the sum, which is then sent to the owner.
void store_sums(const RowTile& tile, const StepScalars&) noexcept {
  for (std::int32_t i = 0; i < tile.rows; ++i)
    std::memcpy(tile.row[i], tile.gradient[i], static_cast<std::size_t>(tile.dim) * sizeof(float));
}

/// Numbers the rows of a replicated table that the core names. Returns them, by place.
std::span<const std::uint64_t> number_rows(const TableRun& table, std::int32_t core,
                                           std::span<std::uint64_t> row, RowPlaces& place_of) {
  place_of.clear(table.rows.rows);
  for (const FeatureRun& feature : table.features) {
    if (feature.core != core) continue;
    feature.plan->visit_rows([&](const auto* rows) {
      for (std::int64_t j = 0; j < feature.plan->row.size; ++j) place_of.add(rows[j]);
    });
  }
  row = row.first(place_of.number());
  place_of.list(row);
  return row;
}

/// Returns the places first <= place < second of the rows that a host is sent.
std::pair<std::int64_t, std::int64_t> places_of(const CoreEntries& entries, std::size_t host,
                                                std::int32_t me) {
  if (entries.table->is_replicated()) return {0, std::cmp_equal(host, me) ? 0 : entries.places};
  const std::span<const std::int64_t> first = entries.table->route.received_first;
  return {first[host], first[host + 1]};
}

/// Returns a part without gradients.
CorePart empty_part(const CoreEntries& entries, std::size_t host, std::int64_t first) {
  const TableRun& table = *entries.table;
  return {.table = &table,
          .numbers = table.is_replicated() ? table.rows.rows : std::ssize(table.route.asked[host]),
          .row = entries.row,
          .first = first};
}

}  // namespace

CoreMemory CoreMemory::take(const TableRun& table, std::int32_t core, std::int32_t hosts,
                            Arena& memory) {
  std::int64_t entries = 0, pieces = 0, places = table.route.received_first.back();
  bool gain = false;
  for (const FeatureRun& feature : table.features) {
    if (feature.core != core) continue;
    entries += feature.plan->row.size;
    pieces += pieces_for(feature.plan->outputs);
    gain |= feature.plan->has_gain();
  }
  CoreMemory taken;
  if (table.is_replicated()) {
    places = std::min(entries, table.rows.rows);
    taken.row = memory.take<std::uint64_t>(places);
  }
  taken.piece = memory.take<GradientPiece>(pieces);
  taken.entry = memory.take<UpdateEntry<std::uint32_t>>(entries + 1);
  if (gain) taken.gain = memory.take<float>(entries + 1);
  taken.place = memory.take<std::uint32_t>(table.accumulates ? places + 1 : entries);
  if (table.accumulates)
    taken.named = memory.take<std::uint8_t>(places);
  else
    taken.run = memory.take<std::int64_t>(hosts + 1);
  taken.gradient = memory.take<float>((table.accumulates ? places : entries) * table.rows.dim);
  return taken;
}

CoreEntries list_entries(const TableRun& table, std::int32_t core, const CoreMemory& memory,
                         RowPlaces& place_of) {
  const bool replicated = table.is_replicated();
  CoreEntries listed = {.table = &table, .piece = memory.piece};
  if (replicated) listed.row = number_rows(table, core, memory.row, place_of);
  listed.places = replicated ? std::ssize(listed.row) : table.route.received_first.back();
  if (!memory.gain.empty()) listed.gain = memory.gain.data();
  std::int64_t count = 0, pieces = 0;
  for (const FeatureRun& feature : table.features) {
    if (feature.core != core) continue;
    const LookupPlan& plan = *feature.plan;
    const auto base = static_cast<std::uint32_t>(pieces * kPieceRows);
    plan.visit_rows([&]<class Index>(const Index* rows) {
      plan.for_each_entry([&](std::int64_t output, std::int64_t k) {
        const auto place = replicated ? place_of[rows[k]]
                                      : static_cast<std::uint32_t>(rows[k] & ~kReceivedBit<Index>);
        memory.entry[count] = {place, base + static_cast<std::uint32_t>(output)};
        if (listed.gain != nullptr) listed.gain[count] = plan.gain(output)(k);
        count += static_cast<std::int64_t>(replicated || (rows[k] & kReceivedBit<Index>) != 0);
      });
    });
    append_pieces(feature.gradient, plan.outputs, table.rows.dim, core,
                  memory.piece.data() + pieces);
    pieces += pieces_for(plan.outputs);
  }
  listed.entry = memory.entry.first(count);
  return listed;
}

CoreSums sum_rows(const CoreEntries& entries, const CoreMemory& memory, GroupScratch& scratch,
                  SimdLevel level) {
  const std::span<std::uint8_t> named = memory.named.first(entries.places);
  std::ranges::fill(named, std::uint8_t{0});
  for (const UpdateEntry<std::uint32_t>& each : entries.entry) named[each.row] = 1;
  std::int64_t count = 0;
  for (std::int64_t place = 0; place < entries.places; ++place) {
    memory.place[count] = static_cast<std::uint32_t>(place);
    count += named[place];
  }
  const CoreSums sums = {memory.place.first(count), memory.gradient.data()};
  if (entries.entry.empty()) return sums;

  std::int64_t bucket[2] = {0, std::ssize(entries.entry)};
  const std::int32_t dim = entries.table->rows.dim;
  TableUpdate update;
  update.rows = {.row = memory.gradient.data(), .stride = dim, .dim = dim, .rows = entries.places};
  update.update_rows = store_sums;
  update.plan = {.entry = entries.entry.data(),
                 .gain = entries.gain,
                 .bucket = bucket,
                 .piece = entries.piece};
  update.gradients = {.piece = entries.piece.data()};
  update_entries(update, 0, std::ssize(entries.entry), scratch, level);
  return sums;
}

CoreList list_gradients(const CoreEntries& entries, const CoreMemory& memory) {
  const std::int32_t dim = entries.table->rows.dim;
  const std::span<const std::int64_t> hosts = entries.table->route.received_first;
  const auto host_of = [&](std::uint32_t place) {
    return entries.table->is_replicated()
               ? 0
               : std::ranges::upper_bound(hosts, place) - hosts.begin() - 1;
  };
  const std::span<std::int64_t> run = memory.run;
  std::ranges::fill(run, 0);
  for (const UpdateEntry<std::uint32_t>& each : entries.entry) ++run[host_of(each.row) + 1];
  std::partial_sum(run.begin(), run.end(), run.begin());
  for (std::size_t k = 0; k < entries.entry.size(); ++k) {
    const auto [place, out] = entries.entry[k];
    const GradientPiece& piece = entries.piece[out / kPieceRows];
    const float* const from = piece.base + out % kPieceRows * piece.stride;
    const std::int64_t at = run[host_of(place)]++;
    memory.place[at] = place;
    const float scale = entries.gain == nullptr ? 1.0f : entries.gain[k];
    float* const to = memory.gradient.data() + at * dim;
    for (std::int32_t c = 0; c < dim; ++c) to[c] = scale * from[c];
  }
  std::copy_backward(run.begin(), run.end() - 1, run.end());  // each was left where the next begins
  run.front() = 0;
  return {run, memory.place.first(entries.entry.size()), memory.gradient.data()};
}

void CorePart::copy_to(std::span<float> to) const {
  if (gradient != nullptr) {
    std::copy_n(gradient, to.size(), to.data());
    return;
  }
  const std::int64_t dim = table->rows.dim;
  float* at = to.data();
  for (const std::uint32_t each : place) at = std::copy_n(by_place + each * dim, dim, at);
}

CorePart part_for(std::size_t host, std::int32_t me, const CoreEntries& entries,
                  const CoreSums& sums) {
  const auto [first, last] = places_of(entries, host, me);
  CorePart part = empty_part(entries, host, first);
  const auto begin = std::ranges::lower_bound(sums.place, first);
  const auto end = std::ranges::lower_bound(sums.place, last);
  part.place = {begin, end};
  if (part.named() == last - first)
    part.gradient = sums.gradient + first * entries.table->rows.dim;
  else
    part.by_place = sums.gradient;
  return part;
}

CorePart part_for(std::size_t host, std::int32_t me, const CoreEntries& entries,
                  const CoreList& list) {
  const auto [first, last] = places_of(entries, host, me);
  CorePart part = empty_part(entries, host, first);
  const std::size_t owner = entries.table->is_replicated() ? 0 : host;
  const std::int64_t begin = list.run[owner];
  const std::int64_t end = first == last ? begin : list.run[owner + 1];
  part.place = list.place.subspan(begin, end - begin);
  part.gradient = list.gradient + begin * entries.table->rows.dim;
  return part;
}

}  // namespace embertable
