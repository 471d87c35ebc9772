#include "step/exchange_gradients.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>

#include "embertable/errors.h"

namespace embertable {
namespace {

/// The rule for rows that other hosts own: stores the sum, which is then sent to the owner.
void store_sums(const RowTile& tile, const StepScalars&) noexcept {
  for (std::int32_t i = 0; i < tile.rows; ++i)
    std::memcpy(tile.row[i], tile.gradient[i], static_cast<std::size_t>(tile.dim) * sizeof(float));
}

/// Calls visit(row, output, entry) for every entry of a plan whose row is (not) a received one.
template <class Index, class Visit>
void for_each_entry_of(const LookupPlan& plan, bool received, Visit visit) {
  const Index* row = plan.row.as<Index>();
  for (std::int64_t output = 0; output < plan.outputs; ++output)
    for (std::int64_t k = plan.first_entry(output); k < plan.first_entry(output + 1); ++k)
      if (((row[k] & kReceivedBit<Index>) != 0) == received)
        visit(static_cast<Index>(row[k] & ~kReceivedBit<Index>), output, k);
}

template <class Visit>
void for_each_entry(const LookupPlan& plan, bool received, Visit visit) {
  plan.row.wide ? for_each_entry_of<std::uint64_t>(plan, received, visit)
                : for_each_entry_of<std::uint32_t>(plan, received, visit);
}

/// Entries for a host's own rows, and the pieces that their gradients are in.
struct OwnEntries {
  const LookupPlan* plan = nullptr;      ///< plan of a feature of an own replica; or
  std::span<const std::uint64_t> owed;   ///< rows that another host asked for, of which
  std::span<const std::uint32_t> named;  ///< one of its replicas named these
  std::int64_t first_piece = 0;

  /// Calls visit(row, out, gain) for every entry.
  template <class Visit>
  void for_each(Visit visit) const {
    const std::int64_t base = first_piece * kPieceRows;
    if (plan != nullptr) {
      return for_each_entry(
          *plan, false, [&](std::uint64_t row, std::int64_t output, std::int64_t k) {
            visit(row, static_cast<std::uint32_t>(base + output), plan->gain(output, k));
          });
    }
    for (std::size_t i = 0; i < named.size(); ++i)
      visit(owed[named[i]], static_cast<std::uint32_t>(base) + static_cast<std::uint32_t>(i), 1.0f);
  }
};

/// Throws if output rows do not fit into 32 bits; entries that are sent one by one also count as
/// output rows.
void check_pieces(const TableRun& table, std::int64_t pieces) {
  if (pieces * kPieceRows <= std::int64_t{std::numeric_limits<std::uint32_t>::max()}) return;
  throw ValueError("table '" + std::string(table.name) +
                   "': a step may have at most 2^32 - 1 output rows and entries that other hosts "
                   "send one by one, got " +
                   std::to_string(pieces * kPieceRows));
}

/// Scatters all entries into buckets by counting; stable.
template <class Index>
void place_entries(UpdatePlan& update, std::span<const OwnEntries> all, std::int32_t buckets,
                   bool gain, Arena& memory) {
  update.bucket = memory.take_zeros<std::int64_t>(buckets + 1);
  const auto bucket_at = [&](std::uint64_t row) {
    return static_cast<std::size_t>(
        bucket_of(static_cast<Index>(row), static_cast<std::uint32_t>(buckets)));
  };
  for (const OwnEntries& entries : all)
    entries.for_each(
        [&](std::uint64_t row, std::uint32_t, float) { ++update.bucket[bucket_at(row) + 1]; });
  const std::span<std::int64_t> cursor = memory.take<std::int64_t>(buckets);
  for (std::size_t b = 0; b < cursor.size(); ++b) {
    cursor[b] = update.bucket[b];
    update.bucket[b + 1] += update.bucket[b];
  }
  auto* entry = memory.take<UpdateEntry<Index>>(update.bucket.back()).data();
  if (gain) update.gain = memory.take<float>(update.bucket.back()).data();
  for (const OwnEntries& entries : all) {
    entries.for_each([&](std::uint64_t row, std::uint32_t out, float a) {
      const std::int64_t at = cursor[bucket_at(row)]++;
      entry[at] = {static_cast<Index>(row), out};
      if (gain) update.gain[at] = a;
    });
  }
  update.entry = entry;
}

/// What the hosts sent for one table: by replica of all hosts, the received rows that it named, and
/// their gradients. Empty for this host's replicas.
struct SentGradients {
  std::span<const std::uint32_t> named;
  const float* rows = nullptr;
};

/// Plans the update of a table from its own entries and from what the others sent, by replica.
void plan_own_update(TableRun& table, std::span<const SentGradients> sent, std::int32_t me,
                     std::int32_t replicas_per_host, Arena& memory) {
  std::int64_t num_pieces = 0;
  for (const FeatureRun& feature : table.features) num_pieces += pieces_for(feature.plan->outputs);
  for (const SentGradients& of : sent) num_pieces += pieces_for(std::ssize(of.named));
  check_pieces(table, num_pieces);
  const std::span<GradientPiece> pieces = memory.take<GradientPiece>(num_pieces);
  const auto sources = memory.take<OwnEntries>(std::ssize(sent) + std::ssize(table.features));
  GradientPiece* piece = pieces.data();
  std::size_t num_sources = 0;
  bool gain = false;
  for (std::int32_t r = 0; std::cmp_less(r, sent.size()); ++r) {
    const std::int32_t host = r / replicas_per_host;
    if (host != me) {
      sources[num_sources++] = {nullptr, table.route.owed[host], sent[r].named,
                                piece - pieces.data()};
      piece = append_pieces(sent[r].rows, std::ssize(sent[r].named), table.rows.dim, r, piece);
      continue;
    }
    for (const FeatureRun& feature : table.features) {
      if (feature.replica != r) continue;
      gain |= feature.plan->has_gain();
      sources[num_sources++] = {feature.plan, {}, {}, piece - pieces.data()};
      piece = append_pieces(feature.gradient, feature.plan->outputs, table.rows.dim, r, piece);
    }
  }
  table.plan = {.wide = table.wide, .piece = pieces};
  table.gradients = {.piece = pieces.data()};
  const std::span<const OwnEntries> all = sources.first(num_sources);
  table.wide ? place_entries<std::uint64_t>(table.plan, all, table.buckets, gain, memory)
             : place_entries<std::uint32_t>(table.plan, all, table.buckets, gain, memory);
}

}  // namespace

void GradientExchange::run(HostStep& step, Messages& messages) {
  const std::int32_t first = messages.host() * step.replicas_per_host;
  messages.memory().reset();
  const auto sums =
      messages.memory().take<ReplicaSums>(std::ssize(step.tables) * step.replicas_per_host);
  auto sum = sums.begin();
  for (const TableRun& table : step.tables) {
    for (std::int32_t r = first; r < first + step.replicas_per_host; ++r) {
      gather_received(table, r);
      *sum++ = table.accumulates ? sum_received_rows(table, messages.memory())
                                 : list_received_entries(table, messages.memory());
    }
  }
  const std::span<const ByteSpan> received = send(sums, messages);

  const auto readers = step.memory.take<MessageReader>(messages.hosts());
  for (std::size_t host = 0; host < readers.size(); ++host)
    readers[host] = MessageReader(received[host]);
  const auto sent = step.memory.take<SentGradients>(messages.hosts() * step.replicas_per_host);
  for (TableRun& table : step.tables) {
    for (std::int32_t r = 0; std::cmp_less(r, sent.size()); ++r) {
      MessageReader& reader = readers[r / step.replicas_per_host];
      const std::int64_t named = reader.number();
      sent[r] = {reader.array<std::uint32_t>(named), nullptr};
      sent[r].rows = reader.array<float>(named * table.rows.dim).data();
    }
    plan_own_update(table, sent, messages.host(), step.replicas_per_host, step.memory);
  }
}

/// Lists what one replica adds to received rows of a table.
void GradientExchange::gather_received(const TableRun& table, std::int32_t replica) {
  pieces_.clear();
  entries_.clear();
  gains_.clear();
  for (const FeatureRun& feature : table.features) {
    if (feature.replica != replica) continue;
    const LookupPlan& plan = *feature.plan;
    const std::size_t first = pieces_.size();
    const std::int64_t base = std::ssize(pieces_) * kPieceRows;
    pieces_.resize(first + static_cast<std::size_t>(pieces_for(plan.outputs)));
    append_pieces(feature.gradient, plan.outputs, table.rows.dim, replica, pieces_.data() + first);
    for_each_entry(plan, true, [&](std::uint64_t row, std::int64_t output, std::int64_t k) {
      entries_.push_back(
          {static_cast<std::uint32_t>(row), static_cast<std::uint32_t>(base + output)});
      gains_.push_back(plan.gain(output, k));
    });
  }
}

/// Sums what is gathered, with the arithmetic of any update.
GradientExchange::ReplicaSums GradientExchange::sum_received_rows(const TableRun& table,
                                                                  Arena& memory) {
  const std::int32_t dim = table.rows.dim;
  const std::int64_t rows = table.route.received_first.back();
  ReplicaSums sums{&table.route, dim, true, {}, memory.take<float>(rows * dim)};
  if (entries_.empty()) return sums;

  const std::span<std::uint8_t> named = memory.take_zeros<std::uint8_t>(rows);
  for (const UpdateEntry<std::uint32_t>& entry : entries_) named[entry.row] = 1;
  sums.index = memory.take<std::uint32_t>(std::count(named.begin(), named.end(), 1));
  auto index = sums.index.begin();
  for (std::size_t i = 0; i < named.size(); ++i)
    if (named[i] != 0) *index++ = static_cast<std::uint32_t>(i);

  std::int64_t bucket[2] = {0, std::ssize(entries_)};
  const UpdatePlan plan{false, entries_.data(), gains_.data(), bucket, pieces_, nullptr};
  TableUpdate update;
  update.rows.row = sums.gradient.data();
  update.rows.stride = dim;
  update.rows.dim = dim;
  update.rows.rows = rows;
  update.update_rows = store_sums;
  update.plan = &plan;
  update.gradients = {.piece = pieces_.data()};
  scratch_.reserve(bucket[1], false, dim);
  update_bucket(update, 0, scratch_, level_);
  return sums;
}

/// Lists what is gathered, entry by entry, for a table without accumulation.
GradientExchange::ReplicaSums GradientExchange::list_received_entries(const TableRun& table,
                                                                      Arena& memory) const {
  const std::int32_t dim = table.rows.dim;
  const std::int64_t entries = std::ssize(entries_);
  ReplicaSums sums{&table.route, dim, false, memory.take<std::uint32_t>(entries),
                   memory.take<float>(entries * dim)};
  float* to = sums.gradient.data();
  for (std::int64_t k = 0; k < entries; ++k) {
    const UpdateEntry<std::uint32_t>& entry = entries_[k];
    const GradientPiece& piece = pieces_[entry.out / kPieceRows];
    const float* from = piece.base + entry.out % kPieceRows * piece.stride;
    sums.index[k] = entry.row;
    for (std::int32_t c = 0; c < dim; ++c) *to++ = gains_[k] * from[c];
  }
  return sums;
}

template <class Visit>
void GradientExchange::ReplicaSums::for_each_of(std::size_t host, Visit visit) const {
  const std::int64_t first = route->received_first[host], last = route->received_first[host + 1];
  const auto from = summed ? std::lower_bound(index.begin(), index.end(), first) : index.begin();
  for (auto i = from; i != index.end(); ++i) {
    if (*i >= first && *i < last) {
      const std::int64_t at = summed ? std::int64_t{*i} : i - index.begin();
      visit(*i - first, gradient.data() + at * dim);
    } else if (summed) {
      return;
    }
  }
}

std::int64_t GradientExchange::ReplicaSums::named_of(std::size_t host) const {
  std::int64_t named = 0;
  for_each_of(host, [&](std::int64_t, const float*) { ++named; });
  return named;
}

/// Sends the owners what each replica adds to their rows. Returns what came from each host.
std::span<const ByteSpan> GradientExchange::send(std::span<const ReplicaSums> sums,
                                                 Messages& messages) {
  const auto bytes = messages.memory().take_zeros<std::int64_t>(messages.hosts());
  for (std::size_t host = 0; host < bytes.size(); ++host) {
    for (const ReplicaSums& sum : sums) {
      const std::int64_t named = sum.named_of(host);
      bytes[host] += message_bytes<std::int64_t>(1) + message_bytes<std::uint32_t>(named) +
                     message_bytes<float>(named * sum.dim);
    }
  }
  return messages.swap(bytes, [&](std::size_t host, MessageWriter& writer) {
    for (const ReplicaSums& sum : sums) {
      const std::int64_t named = sum.named_of(host);
      writer.number(named);
      std::uint32_t* index = writer.array<std::uint32_t>(named).data();
      float* row = writer.array<float>(named * sum.dim).data();
      sum.for_each_of(host, [&](std::int64_t received, const float* gradient) {
        *index++ = static_cast<std::uint32_t>(received);
        row = std::copy_n(gradient, sum.dim, row);
      });
    }
  });
}

}  // namespace embertable
