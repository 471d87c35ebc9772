#include "step/plan_own_updates.h"

#include <limits>
#include <utility>

#include "base/assert.h"
#include "kernels/once.h"
#include "step/bucket_policy.h"

namespace embertable {
namespace {

/// Whether a row is a received one is as good as random, so loops over entries do not branch on it.
template <class Index>
bool is_received(Index row) {
  return (row & kReceivedBit<Index>) != 0;
}

/// Entries for rows that a host holds, and the pieces that their gradients are in.
struct OwnEntries {
  const LookupPlan* plan = nullptr;     ///< plan of a feature of an own core; or
  std::span<const std::uint64_t> sent;  ///< rows that a core of another host named
  std::int64_t first_piece = 0;
};

/// Numbers the places of an update that entries are counted by: its buckets, then ranges of rows
/// that are set apart since no other entry names them, then received rows.
struct Places {
  std::uint32_t buckets = 1;
  RowRanges ranges;  ///< where rows are set apart
  OnceFilter once;   ///< without words: none are

  std::uint32_t received() const { return buckets + static_cast<std::uint32_t>(ranges.count); }
  std::int64_t count() const { return received() + 1; }

  template <class Index>
  std::uint32_t of(Index row) const {
    const std::uint32_t bucket = bucket_of(row, buckets);
    const bool apart = once.word != nullptr && !seen_again(once, once_slot(row, once.bits));
    return is_received(row) ? received() : apart ? buckets + ranges.of(row) : bucket;
  }
};

/// Marks what entries name, but for received rows.
template <class Index>
void see_entries(const OwnEntries& entries, const OnceFilter& once) {
  for (const std::uint64_t row : entries.sent)
    see_slot(once, once_slot(static_cast<Index>(row), once.bits));
  if (entries.plan == nullptr) return;
  const Index* const row = entries.plan->row.as<Index>();
  for (std::int64_t j = 0; j < entries.plan->row.size; ++j)
    if (!is_received(row[j])) see_slot(once, once_slot(row[j], once.bits));
}

/// Counts entries by place.
template <class Index>
void count_entries(const OwnEntries& entries, const Places& places, std::span<std::int64_t> count) {
  for (const std::uint64_t row : entries.sent) ++count[places.of(static_cast<Index>(row))];
  if (entries.plan == nullptr) return;
  const Index* const row = entries.plan->row.as<Index>();
  for (std::int64_t j = 0; j < entries.plan->row.size; ++j) ++count[places.of(row[j])];
}

/// Writes entries to their places. Those for received rows go to where the last cursor is, which
/// does not move.
template <class Index>
void write_entries(const OwnEntries& entries, const Places& places, std::span<std::int64_t> cursor,
                   UpdatePlan& update) {
  auto* const entry = static_cast<UpdateEntry<Index>*>(update.entry);
  float* const gain = update.gain;
  auto out = static_cast<std::uint32_t>(entries.first_piece * kPieceRows);
  for (const std::uint64_t each : entries.sent) {
    const auto row = static_cast<Index>(each);
    const std::int64_t at = cursor[places.of(row)]++;
    entry[at] = {row, out++};
    if (gain != nullptr) gain[at] = 1.0f;
  }
  if (entries.plan == nullptr) return;
  const LookupPlan& plan = *entries.plan;
  const Index* const row = plan.row.as<Index>();
  plan.for_each_entry([&](std::int64_t output, std::int64_t k) {
    std::int64_t& to = cursor[places.of(row[k])];
    const std::int64_t at = to;
    to += static_cast<std::int64_t>(!is_received(row[k]));
    entry[at] = {row[k], out + static_cast<std::uint32_t>(output)};
    if (gain != nullptr) gain[at] = plan.gain(output)(k);
  });
}

/// The update of one table: where its entries come from, and room for them.
struct PlannedUpdate {
  TableRun* table = nullptr;
  std::span<const OwnEntries> all;
  Places places;
  std::span<std::int64_t> cursor;  ///< [places.count()], zeros
  std::int64_t floats = 0;         ///< moved by `place`, about

  /// Scatters all entries into buckets by counting; stable.
  template <class Index>
  void place_as() const {
    UpdatePlan& update = table->plan;
    if (places.once.word != nullptr)
      for (const OwnEntries& entries : all) see_entries<Index>(entries, places.once);
    for (const OwnEntries& entries : all) count_entries<Index>(entries, places, cursor);
    std::int64_t at = 0;
    for (std::size_t b = 0; b < places.buckets; ++b) {
      update.bucket[b] = at;
      at += std::exchange(cursor[b], at);
    }
    update.bucket[places.buckets] = at;
    for (std::size_t range = places.buckets; range < places.received(); ++range)
      at += std::exchange(cursor[range], at);
    update.once = at - update.bucket[places.buckets];
    cursor[places.received()] = at;
    for (const OwnEntries& entries : all) write_entries<Index>(entries, places, cursor, update);
  }
  void place() const { table->wide ? place_as<std::uint64_t>() : place_as<std::uint32_t>(); }
};

/// Lists what the update of a table consists of, by core: its own entries, and what the others
/// sent. Makes room for the entries.
PlannedUpdate plan_own_update(TableRun& table, std::span<const SentGradients> sent, std::int32_t me,
                              std::int32_t cores_per_host, Arena& memory) {
  std::int64_t num_pieces = 0, outputs = 0, entries = table.entries();
  for (const FeatureRun& feature : table.features) {
    num_pieces += pieces_for(feature.plan->outputs);
    outputs += feature.plan->outputs;
  }
  for (const SentGradients& of : sent) {
    num_pieces += pieces_for(std::ssize(of.row));
    outputs += std::ssize(of.row);
    entries += std::ssize(of.row);
  }
  // The lookup has checked the update's size, before any row could change; not so that of a
  // replicated table, which is checked when it is planned.
  EMBERTABLE_ASSERT(table.is_replicated() ||
                    num_pieces * kPieceRows <=
                        std::int64_t{std::numeric_limits<std::uint32_t>::max()});
  const std::span<GradientPiece> pieces = memory.take<GradientPiece>(num_pieces);
  const auto sources = memory.take<OwnEntries>(std::ssize(sent) + std::ssize(table.features));
  GradientPiece* piece = pieces.data();
  std::size_t num_sources = 0;
  bool gain = false;
  for (std::int32_t core = 0; std::cmp_less(core, sent.size()); ++core) {
    const std::int32_t host = core / cores_per_host;
    if (host != me) {
      sources[num_sources++] = {nullptr, sent[core].row, piece - pieces.data()};
      piece = append_pieces(sent[core].gradient, std::ssize(sent[core].row), table.rows.dim, core,
                            piece);
      continue;
    }
    for (const FeatureRun& feature : table.features) {
      if (feature.core != core) continue;
      gain |= feature.plan->has_gain();
      sources[num_sources++] = {feature.plan, {}, piece - pieces.data()};
      piece = append_pieces(feature.gradient, feature.plan->outputs, table.rows.dim, core, piece);
    }
  }
  UpdatePlan& update = table.plan;
  update = {.wide = table.wide,
            .bucket = memory.take<std::int64_t>(table.buckets + 1),
            .ranges = table.once_ranges.count};
  update.piece = pieces;
  table.gradients = {.piece = pieces.data()};
  table.gradient_rows = outputs;
  const std::int64_t room = entries + 1;  // one for those of received rows
  if (table.wide)
    update.entry = memory.take<UpdateEntry<std::uint64_t>>(room).data();
  else
    update.entry = memory.take<UpdateEntry<std::uint32_t>>(room).data();
  if (gain) update.gain = memory.take<float>(room).data();
  Places places = {.buckets = static_cast<std::uint32_t>(table.buckets),
                   .ranges = table.once_ranges,
                   .once = {}};
  if (table.once_ranges) {
    places.once.bits = once_slot_bits(entries);
    places.once.word = memory.take_zeros<std::uint64_t>(places.once.words()).data();
  }
  return {.table = &table,
          .all = sources.first(num_sources),
          .places = places,
          .cursor = memory.take_zeros<std::int64_t>(places.count()),
          .floats = 4 * entries};
}

}  // namespace

void plan_own_updates(HostStep& step, std::span<const SentGradients> sent, std::int32_t me,
                      Workers& workers) {
  const auto updates = step.memory.take<PlannedUpdate>(std::ssize(step.tables));
  std::int64_t floats = 0;
  for (std::size_t t = 0; t < updates.size(); ++t) {
    const std::size_t cores = sent.size() / updates.size();
    updates[t] = plan_own_update(step.tables[t], sent.subspan(t * cores, cores), me,
                                 step.cores_per_host, step.memory);
    floats += updates[t].floats;
  }
  workers.run(std::ssize(updates), floats,
              [&](const WorkItem& work) { updates[work.index].place(); });
  for (const TableRun& table : step.tables)
    if (table.is_replicated()) check_planned_size(table);
}

}  // namespace embertable
