#include "step/exchange_gradients.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>
#include <utility>

#include "base/assert.h"
#include "kernels/once.h"
#include "step/backward.h"
#include "step/bucket_policy.h"

namespace embertable {
namespace {

/// The rule for rows that other hosts own: stores the sum, which is then sent to the owner.
void store_sums(const RowTile& tile, const StepScalars&) noexcept {
  for (std::int32_t i = 0; i < tile.rows; ++i)
    std::memcpy(tile.row[i], tile.gradient[i], static_cast<std::size_t>(tile.dim) * sizeof(float));
}

/// Calls visit(output, entry) for every entry of a plan, in order.
template <class Visit>
void for_each_entry(const LookupPlan& plan, Visit visit) {
  if (plan.split.empty()) {
    for (std::int64_t k = 0; k < plan.outputs; ++k) visit(k, k);
    return;
  }
  const std::int64_t* const split = plan.split.data();
  for (std::int64_t output = 0; output < plan.outputs; ++output)
    for (std::int64_t k = split[output]; k < split[output + 1]; ++k) visit(output, k);
}

/// Whether a row is a received one is as good as random, so loops over entries do not branch on it.
template <class Index>
bool is_received(Index row) {
  return (row & kReceivedBit<Index>) != 0;
}

/// Entries for rows that a host holds, and the pieces that their gradients are in.
struct OwnEntries {
  const LookupPlan* plan = nullptr;     ///< plan of a feature of an own replica; or
  std::span<const std::uint64_t> sent;  ///< rows that a replica of another host named
  std::int64_t first_piece = 0;
};

/// Numbers the places of an update that entries are counted by: its buckets, then rows that are set
/// apart since no other entry names them, then received rows.
struct Places {
  std::uint32_t buckets = 1;
  OnceFilter once;  ///< without words: no rows are set apart

  static constexpr std::int64_t kOthers = 2;
  std::int64_t count() const { return buckets + kOthers; }
  std::uint32_t apart() const { return buckets; }
  std::uint32_t received() const { return buckets + 1; }

  template <class Index>
  std::uint32_t of(Index row) const {
    const std::uint32_t bucket = bucket_of(row, buckets);
    const bool apart = once.word != nullptr && !seen_again(once, once_slot(row, once.bits));
    return is_received(row) ? received() : apart ? buckets : bucket;
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
  for_each_entry(plan, [&](std::int64_t output, std::int64_t k) {
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
    update.once = std::exchange(cursor[places.apart()], at);
    cursor[places.received()] = at + update.once;
    for (const OwnEntries& entries : all) write_entries<Index>(entries, places, cursor, update);
  }
  void place() const { table->wide ? place_as<std::uint64_t>() : place_as<std::uint32_t>(); }
};

/// Tells whether a replica's sums are those of all rows that it may name, which are `numbers`: the
/// rows' numbers are not sent then.
bool names_all(bool summed, std::int64_t named, std::int64_t numbers) {
  return summed && named == numbers;
}

/// What one replica of another host sent for one table. Empty for this host's replicas.
struct SentGradients {
  std::span<const std::uint64_t> row;  ///< local rows
  const float* gradient = nullptr;     ///< [row.size(), dim]
};

/// Reads what one replica of a host sent for a table.
SentGradients read_gradients(MessageReader& reader, const TableRun& table, std::size_t host,
                             Arena& memory) {
  const std::span<const std::uint64_t> owed = table.route.owed[host];
  const std::int64_t numbers = table.is_replicated() ? table.rows.rows : std::ssize(owed);
  const std::int64_t named = reader.number();
  SentGradients sent = {.row = owed};
  if (table.is_replicated() || !names_all(table.accumulates, named, numbers)) {
    const std::span<std::uint64_t> row = memory.take<std::uint64_t>(named);
    if (names_all(table.accumulates, named, numbers))
      std::iota(row.begin(), row.end(), 0);
    else
      reader.indices(numbers, row);
    if (!table.is_replicated())
      for (std::uint64_t& one : row) one = owed[one];
    sent.row = row;
  }
  sent.gradient = reader.array<float>(named * table.rows.dim).data();
  return sent;
}

/// Lists what the update of a table consists of, by replica: its own entries, and what the others
/// sent. Makes room for the entries.
PlannedUpdate plan_own_update(TableRun& table, std::span<const SentGradients> sent, std::int32_t me,
                              std::int32_t replicas_per_host, Arena& memory) {
  std::int64_t num_pieces = 0, entries = table.entries();
  for (const FeatureRun& feature : table.features) num_pieces += pieces_for(feature.plan->outputs);
  for (const SentGradients& of : sent) {
    num_pieces += pieces_for(std::ssize(of.row));
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
  for (std::int32_t r = 0; std::cmp_less(r, sent.size()); ++r) {
    const std::int32_t host = r / replicas_per_host;
    if (host != me) {
      sources[num_sources++] = {nullptr, sent[r].row, piece - pieces.data()};
      piece = append_pieces(sent[r].gradient, std::ssize(sent[r].row), table.rows.dim, r, piece);
      continue;
    }
    for (const FeatureRun& feature : table.features) {
      if (feature.replica != r) continue;
      gain |= feature.plan->has_gain();
      sources[num_sources++] = {feature.plan, {}, piece - pieces.data()};
      piece = append_pieces(feature.gradient, feature.plan->outputs, table.rows.dim, r, piece);
    }
  }
  UpdatePlan& update = table.plan;
  update = {.wide = table.wide, .bucket = memory.take<std::int64_t>(table.buckets + 1)};
  update.piece = pieces;
  table.gradients = {.piece = pieces.data()};
  const std::int64_t room = entries + 1;  // one for those of received rows
  if (table.wide)
    update.entry = memory.take<UpdateEntry<std::uint64_t>>(room).data();
  else
    update.entry = memory.take<UpdateEntry<std::uint32_t>>(room).data();
  if (gain) update.gain = memory.take<float>(room).data();
  Places places = {.buckets = static_cast<std::uint32_t>(table.buckets), .once = {}};
  if (table.once) {
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

void RowPlaces::reserve(std::int64_t table_rows) {
  bits_.reserve((table_rows + 63) / 64);
  before_.reserve((table_rows + 63) / 64);
}

void RowPlaces::clear(std::int64_t table_rows) {
  bits_.assign((table_rows + 63) / 64, 0);
  before_.resize(bits_.size());
}

std::int64_t RowPlaces::number() {
  std::int64_t rows = 0;
  for (std::size_t word = 0; word < bits_.size(); ++word) {
    before_[word] = static_cast<std::uint32_t>(rows);
    rows += std::popcount(bits_[word]);
  }
  return rows;
}

void RowPlaces::list(std::span<std::uint64_t> rows) const {
  auto row = rows.begin();
  for (std::size_t word = 0; word < bits_.size(); ++word)
    for (std::uint64_t left = bits_[word]; left != 0; left &= left - 1)
      *row++ = 64 * word + static_cast<std::uint64_t>(std::countr_zero(left));
}

void GradientExchange::run(HostStep& step, Messages& messages, Workers& workers) {
  messages.memory().reset();
  const std::span<ReplicaSums> sums = list_sums(step, messages);
  make_sums(sums, workers);
  const std::span<const ByteSpan> received = send(sums, messages, workers);

  const auto readers = step.memory.take<MessageReader>(messages.hosts());
  for (std::size_t host = 0; host < readers.size(); ++host)
    readers[host] = MessageReader(received[host]);
  const auto sent = step.memory.take<SentGradients>(messages.hosts() * step.replicas_per_host);
  const auto updates = step.memory.take<PlannedUpdate>(std::ssize(step.tables));
  std::int64_t floats = 0;
  for (std::size_t t = 0; t < updates.size(); ++t) {
    TableRun& table = step.tables[t];
    for (std::int32_t r = 0; std::cmp_less(r, sent.size()); ++r) {
      const std::size_t host = r / step.replicas_per_host;
      sent[r] = read_gradients(readers[host], table, host, step.memory);
    }
    updates[t] = plan_own_update(table, sent, messages.host(), step.replicas_per_host, step.memory);
    floats += updates[t].floats;
  }
  workers.run(std::ssize(updates), floats,
              [&](const WorkItem& work) { updates[work.index].place(); });
  for (const TableRun& table : step.tables)
    if (table.is_replicated()) check_planned_size(table);
}

/// Lists what each replica of this host sends of each table, and makes room for it.
std::span<GradientExchange::ReplicaSums> GradientExchange::list_sums(const HostStep& step,
                                                                     Messages& messages) {
  Arena& memory = messages.memory();
  const std::int32_t first = messages.host() * step.replicas_per_host;
  const auto sums = memory.take<ReplicaSums>(std::ssize(step.tables) * step.replicas_per_host);
  auto sum = sums.begin();
  for (const TableRun& table : step.tables) {
    for (std::int32_t r = first; r < first + step.replicas_per_host; ++r) {
      *sum = {.table = &table, .me = messages.host(), .replica = r};
      sum->places = table.route.received_first.back();
      std::int64_t entries = 0, pieces = 0;
      bool gain = false;
      for (const FeatureRun& feature : table.features) {
        if (feature.replica != r) continue;
        entries += feature.plan->row.size;
        pieces += pieces_for(feature.plan->outputs);
        gain |= feature.plan->has_gain();
      }
      if (table.is_replicated()) {
        sum->places = std::min(entries, table.rows.rows);
        sum->row = memory.take<std::uint64_t>(sum->places);
      }
      sum->piece = memory.take<GradientPiece>(pieces);
      sum->entry = memory.take<UpdateEntry<std::uint32_t>>(entries + 1);
      if (gain) sum->gain = memory.take<float>(entries + 1).data();
      sum->index = memory.take<std::uint32_t>(table.accumulates ? sum->places + 1 : entries);
      if (table.accumulates) sum->named = memory.take<std::uint8_t>(sum->places);
      sum->gradient =
          memory.take<float>((table.accumulates ? sum->places : entries) * table.rows.dim);
      ++sum;
    }
  }
  return sums;
}

void GradientExchange::make_sums(std::span<ReplicaSums> sums, Workers& workers) {
  std::int64_t floats = 0, replicated_rows = 0;
  for (const ReplicaSums& sum : sums) {
    floats += (std::ssize(sum.entry) - 1) * sum.table->rows.dim;
    if (sum.table->is_replicated())
      replicated_rows = std::max(replicated_rows, sum.table->rows.rows);
  }
  scratch_.reserve(std::ssize(sums), workers.count(), [&](std::int64_t i) {
    const ReplicaSums& sum = sums[i];
    return sum.table->accumulates
               ? ScratchPool::Need{.entries = std::ssize(sum.entry) - 1, .dim = sum.table->rows.dim}
               : ScratchPool::Need();
  });
  place_of_.resize(workers.count());
  for (RowPlaces& places : place_of_) places.reserve(replicated_rows);
  workers.run(std::ssize(sums), floats, [&](const WorkItem& work) {
    ReplicaSums& sum = sums[work.index];
    if (sum.table->is_replicated()) sum.number_rows(place_of_[work.worker]);
    sum.list_entries(place_of_[work.worker]);
    sum.table->accumulates ? sum.sum_rows(scratch_.of(work), level_) : sum.scale_entries();
  });
}

/// Numbers the rows of a replicated table that the replica names.
void GradientExchange::ReplicaSums::number_rows(RowPlaces& place_of) {
  place_of.clear(table->rows.rows);
  for (const FeatureRun& feature : table->features) {
    if (feature.replica != replica) continue;
    feature.plan->visit_rows([&](const auto* rows) {
      for (std::int64_t j = 0; j < feature.plan->row.size; ++j) place_of.add(rows[j]);
    });
  }
  places = place_of.number();
  row = row.first(places);
  place_of.list(row);
}

/// Lists the replica's entries for rows that other hosts hold, and where their gradients are.
void GradientExchange::ReplicaSums::list_entries(const RowPlaces& place_of) {
  std::int64_t count = 0, pieces = 0;
  const bool replicated = table->is_replicated();
  for (const FeatureRun& feature : table->features) {
    if (feature.replica != replica) continue;
    const LookupPlan& plan = *feature.plan;
    const auto base = static_cast<std::uint32_t>(pieces * kPieceRows);
    plan.visit_rows([&]<class Index>(const Index* rows) {
      for_each_entry(plan, [&](std::int64_t output, std::int64_t k) {
        const auto place = replicated ? place_of[rows[k]]
                                      : static_cast<std::uint32_t>(rows[k] & ~kReceivedBit<Index>);
        entry[count] = {place, base + static_cast<std::uint32_t>(output)};
        if (gain != nullptr) gain[count] = plan.gain(output)(k);
        count += static_cast<std::int64_t>(replicated || is_received(rows[k]));
      });
    });
    append_pieces(feature.gradient, plan.outputs, table->rows.dim, replica, piece.data() + pieces);
    pieces += pieces_for(plan.outputs);
  }
  entry = entry.first(count);
}

/// Sums the listed entries' gradients by place, with the arithmetic of any update.
void GradientExchange::ReplicaSums::sum_rows(GroupScratch& scratch, SimdLevel level) {
  std::ranges::fill(named, std::uint8_t{0});
  for (const UpdateEntry<std::uint32_t>& each : entry) named[each.row] = 1;
  std::int64_t count = 0;
  for (std::int64_t place = 0; place < places; ++place) {
    index[count] = static_cast<std::uint32_t>(place);
    count += named[place];
  }
  index = index.first(count);
  if (entry.empty()) return;

  std::int64_t bucket[2] = {0, std::ssize(entry)};
  TableUpdate update;
  update.rows = {
      .row = gradient.data(), .stride = table->rows.dim, .dim = table->rows.dim, .rows = places};
  update.update_rows = store_sums;
  update.plan = {.entry = entry.data(), .gain = gain, .bucket = bucket, .piece = piece};
  update.gradients = {.piece = piece.data()};
  update_entries(update, 0, std::ssize(entry), scratch, level);
}

/// Writes the listed entries' gradients, one by one, for a table without accumulation.
void GradientExchange::ReplicaSums::scale_entries() {
  const std::int32_t dim = table->rows.dim;
  float* to = gradient.data();
  for (std::size_t k = 0; k < entry.size(); ++k) {
    const GradientPiece& from_piece = piece[entry[k].out / kPieceRows];
    const float* from = from_piece.base + entry[k].out % kPieceRows * from_piece.stride;
    index[k] = entry[k].row;
    const float scale = gain == nullptr ? 1.0f : gain[k];
    for (std::int32_t c = 0; c < dim; ++c) *to++ = scale * from[c];
  }
  index = index.first(entry.size());
}

template <class Visit>
void GradientExchange::ReplicaSums::for_each_of(std::size_t host, Visit visit) const {
  const bool replicated = table->is_replicated(), summed = table->accumulates;
  const auto [first, last] = places_of(host);
  const std::int64_t dim = table->rows.dim;
  const auto from = summed ? std::ranges::lower_bound(index, first) : index.begin();
  for (auto i = from; i != index.end(); ++i) {
    if (*i >= first && *i < last) {
      const std::int64_t at = summed ? std::int64_t{*i} : i - index.begin();
      visit(replicated ? static_cast<std::int64_t>(row[*i]) : *i - first,
            gradient.data() + at * dim);
    } else if (summed) {
      return;
    }
  }
}

/// Returns the places first <= place < second of the rows that a host is sent.
std::pair<std::int64_t, std::int64_t> GradientExchange::ReplicaSums::places_of(
    std::size_t host) const {
  if (table->is_replicated()) return {0, std::cmp_equal(host, me) ? 0 : places};
  return {table->route.received_first[host], table->route.received_first[host + 1]};
}

std::int64_t GradientExchange::ReplicaSums::named_of(std::size_t host) const {
  const auto [first, last] = places_of(host);
  if (table->accumulates)
    return std::ranges::lower_bound(index, last) - std::ranges::lower_bound(index, first);
  return std::ranges::count_if(index, [first = first, last = last](std::int64_t place) {
    return place >= first && place < last;
  });
}

std::int64_t GradientExchange::ReplicaSums::numbers_of(std::size_t host) const {
  return table->is_replicated() ? table->rows.rows : std::ssize(table->route.asked[host]);
}

/// Copies what a host is sent.
void GradientExchange::ReplicaSums::copy_to(std::size_t host, std::span<float> to) const {
  const auto [first, last] = places_of(host);
  const std::int64_t dim = table->rows.dim;
  if (table->accumulates && std::ssize(to) == (last - first) * dim) {  // all of them are named
    std::copy_n(gradient.data() + first * dim, to.size(), to.data());
    return;
  }
  float* at = to.data();
  for_each_of(host, [&](std::int64_t, const float* from) { at = std::copy_n(from, dim, at); });
}

/// Sends the other hosts what each replica adds to their rows. Returns what came from each host.
std::span<const ByteSpan> GradientExchange::send(std::span<const ReplicaSums> sums,
                                                 Messages& messages, Workers& workers) {
  Arena& memory = messages.memory();
  struct Part {
    const ReplicaSums* sum;
    std::size_t host;
    std::int64_t named;
    std::span<float> to;
  };
  const auto parts = memory.take<Part>(std::ssize(sums) * messages.hosts());
  const auto bytes = memory.take_zeros<std::int64_t>(messages.hosts());
  auto part = parts.begin();
  std::int64_t floats = 0;
  for (std::size_t host = 0; host < bytes.size(); ++host) {
    for (const ReplicaSums& sum : sums) {
      const std::int64_t named = sum.named_of(host), numbers = sum.numbers_of(host);
      const std::int64_t size = named * sum.table->rows.dim;
      *part++ = {&sum, host, named, {}};
      floats += size;
      bytes[host] += message_bytes<std::int64_t>(1) + message_bytes<float>(size);
      if (!names_all(sum.table->accumulates, named, numbers))
        bytes[host] += index_bytes(named, numbers);
    }
  }
  part = parts.begin();
  const auto send = messages.write(bytes, memory, [&](std::size_t host, MessageWriter& writer) {
    for (const ReplicaSums& sum : sums) {
      const std::int64_t named = part->named, numbers = sum.numbers_of(host);
      writer.number(named);
      if (!names_all(sum.table->accumulates, named, numbers)) {
        writer.indices(named, numbers, [&](auto give) {
          sum.for_each_of(host, [&](std::int64_t number, const float*) { give(number); });
        });
      }
      part->to = writer.array<float>(named * sum.table->rows.dim);
      ++part;
    }
  });
  workers.run(std::ssize(parts), floats, [&](const WorkItem& work) {
    const Part& mine = parts[work.index];
    mine.sum->copy_to(mine.host, mine.to);
  });
  messages.start(Channel::kStep, "sums of gradients", send);
  return messages.finish(Channel::kStep);
}

}  // namespace embertable
