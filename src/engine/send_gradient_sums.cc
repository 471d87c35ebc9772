// What more than one host adds to a backward: gradients of others' rows are summed per replica and
// sent to their owners before the update.
#include <algorithm>
#include <cstring>
#include <limits>

#include "embertable/errors.h"
#include "engine/host.h"

namespace embertable::engine {
namespace {

/// The rule of rows that belong to others: the sum itself is what they are sent.
void store_sums(const RowTile& tile, const StepScalars&) noexcept {
  for (std::int32_t i = 0; i < tile.rows; ++i)
    std::memcpy(tile.row[i], tile.gradient[i], static_cast<std::size_t>(tile.dim) * sizeof(float));
}

/// Calls visit(row, output, entry) for every entry of a plan whose row is (not) a received one.
template <class Index, class Visit>
void for_each_entry_of(const LookupPlan& plan, bool received, Visit visit) {
  const Index* row = plan.row.as<Index>();
  for (std::int64_t output = 0; output < plan.outputs; ++output) {
    for (std::int64_t k = plan.first_entry(output); k < plan.first_entry(output + 1); ++k) {
      if (((row[k] & kReceivedBit<Index>) != 0) == received)
        visit(static_cast<Index>(row[k] & ~kReceivedBit<Index>), output, k);
    }
  }
}

template <class Visit>
void for_each_entry(const LookupPlan& plan, bool received, Visit visit) {
  if (plan.row.wide) {
    for_each_entry_of<std::uint64_t>(plan, received, visit);
  } else {
    for_each_entry_of<std::uint32_t>(plan, received, visit);
  }
}

/// Where entries come from and which pieces their gradients are in.
struct EntrySource {
  const LookupPlan* plan = nullptr;      ///< of a feature of an own replica; or
  std::span<const std::uint64_t> owed;   ///< rows that another host asked for, of which
  std::span<const std::uint32_t> named;  ///< one of its replicas named these
  std::int64_t first_piece = 0;
};

template <class Visit>
void visit_entries(const EntrySource& source, Visit visit) {
  const std::int64_t base = source.first_piece * kPieceRows;
  if (source.plan) {
    return for_each_entry(
        *source.plan, false, [&](std::uint64_t row, std::int64_t output, std::int64_t k) {
          visit(row, static_cast<std::uint32_t>(base + output), source.plan->gain(output, k));
        });
  }
  for (std::size_t i = 0; i < source.named.size(); ++i)
    visit(source.owed[source.named[i]],
          static_cast<std::uint32_t>(base) + static_cast<std::uint32_t>(i), 1.0f);
}

/// Output rows are numbered with 32 bits; entries that are sent one by one are so many only here.
void check_pieces(const StoredTable& table, std::int64_t pieces) {
  if (pieces * kPieceRows <= std::int64_t{std::numeric_limits<std::uint32_t>::max()}) return;
  throw ValueError("table '" + table.name +
                   "': a step may have at most 2^32 - 1 output rows and entries that other hosts "
                   "send one by one, got " +
                   std::to_string(pieces * kPieceRows));
}

/// A stable counting scatter of all sources into buckets.
template <class Index>
void place_entries(UpdatePlan& update, std::span<const EntrySource> sources, std::int32_t buckets,
                   bool gain, Arena& memory) {
  update.bucket = memory.take_zeros<std::int64_t>(buckets + 1);
  const auto bucket_at = [&](std::uint64_t row) {
    return static_cast<std::size_t>(
        bucket_of(static_cast<Index>(row), static_cast<std::uint32_t>(buckets)));
  };
  for (const EntrySource& source : sources)
    visit_entries(source, [&](std::uint64_t row, std::uint32_t, float) {
      ++update.bucket[bucket_at(row) + 1];
    });
  const std::span<std::int64_t> cursor = memory.take<std::int64_t>(buckets);
  for (std::size_t b = 0; b < cursor.size(); ++b) {
    cursor[b] = update.bucket[b];
    update.bucket[b + 1] += update.bucket[b];
  }
  auto* entry = memory.take<UpdateEntry<Index>>(update.bucket.back()).data();
  if (gain) update.gain = memory.take<float>(update.bucket.back()).data();
  for (const EntrySource& source : sources) {
    visit_entries(source, [&](std::uint64_t row, std::uint32_t out, float a) {
      const std::int64_t at = cursor[bucket_at(row)]++;
      entry[at] = {static_cast<Index>(row), out};
      if (gain) update.gain[at] = a;
    });
  }
  update.entry = entry;
}

}  // namespace

void Host::sum_for_owners(Tables& tables, Step& step) {
  of(step).update.assign(assembly_.tables.size(), UpdatePlan{});
  messages_.reset();
  const auto sums = messages_.take<ReplicaSums>(static_cast<std::int64_t>(assembly_.tables.size()) *
                                                replicas_per_host_);
  auto sum = sums.begin();
  for (std::size_t t = 0; t < assembly_.tables.size(); ++t) {
    const std::int32_t dim = tables.tables()[t].dim;
    const TableRoute& route = of(step).route[t];
    for (std::int32_t r = first_replica(); r < first_replica() + replicas_per_host_; ++r) {
      gather_received(step, t, r, dim);
      *sum++ = assembly_.tables[t].accumulates() ? sum_received_rows(route, dim)
                                                 : list_received_entries(route, dim);
    }
  }
  exchange_sums(sums);
}

/// Lists what one replica adds to received rows of a table.
void Host::gather_received(Step& step, std::size_t table, std::int32_t replica, std::int32_t dim) {
  ReceivedGradients& gradients = received_gradients_;
  gradients.pieces.clear();
  gradients.entries.clear();
  gradients.gains.clear();
  for (const std::int64_t feature : assembly_.tables[table].features) {
    const LookupPlan& plan = step.plan(replica, feature);
    const auto base = static_cast<std::int64_t>(gradients.pieces.size()) * kPieceRows;
    append_pieces(step, replica, feature, dim, gradients.pieces);
    for_each_entry(plan, true, [&](std::uint64_t row, std::int64_t output, std::int64_t k) {
      gradients.entries.push_back(
          {static_cast<std::uint32_t>(row), static_cast<std::uint32_t>(base + output)});
      gradients.gains.push_back(plan.gain(output, k));
    });
  }
}

/// Sums what is gathered, in the arithmetic of any update.
Host::ReplicaSums Host::sum_received_rows(const TableRoute& route, std::int32_t dim) {
  const std::int64_t rows = route.received_first.back();
  ReceivedGradients& gradients = received_gradients_;
  ReplicaSums sums{&route, dim, true, {}, messages_.take<float>(rows * dim)};
  if (gradients.entries.empty()) return sums;

  const std::span<std::uint8_t> named = messages_.take_zeros<std::uint8_t>(rows);
  for (const UpdateEntry<std::uint32_t>& entry : gradients.entries) named[entry.row] = 1;
  sums.index = messages_.take<std::uint32_t>(std::count(named.begin(), named.end(), 1));
  auto index = sums.index.begin();
  for (std::size_t i = 0; i < named.size(); ++i)
    if (named[i] != 0) *index++ = static_cast<std::uint32_t>(i);

  std::int64_t bucket[2] = {0, static_cast<std::int64_t>(gradients.entries.size())};
  const UpdatePlan plan{false,  gradients.entries.data(), gradients.gains.data(),
                        bucket, gradients.pieces,         nullptr};
  TableUpdate update;
  update.rows.row = sums.gradient.data();
  update.rows.stride = dim;
  update.rows.dim = dim;
  update.rows.rows = rows;
  update.update_rows = store_sums;
  update.plan = &plan;
  update.gradients = {.piece = gradients.pieces.data()};
  scratch_.front().reserve(bucket[1], false, dim);
  update_bucket(update, 0, scratch_.front(), level_);
  return sums;
}

/// Of a table without accumulation: what is gathered, entry by entry.
Host::ReplicaSums Host::list_received_entries(const TableRoute& route, std::int32_t dim) {
  const ReceivedGradients& gradients = received_gradients_;
  const auto entries = static_cast<std::int64_t>(gradients.entries.size());
  ReplicaSums sums{&route, dim, false, messages_.take<std::uint32_t>(entries),
                   messages_.take<float>(entries * dim)};
  float* to = sums.gradient.data();
  for (std::size_t k = 0; k < gradients.entries.size(); ++k) {
    const UpdateEntry<std::uint32_t>& entry = gradients.entries[k];
    const GradientPiece& piece = gradients.pieces[entry.out / kPieceRows];
    const float* from = piece.base + entry.out % kPieceRows * piece.stride;
    const float gain = gradients.gains[k];
    sums.index[k] = entry.row;
    for (std::int32_t c = 0; c < dim; ++c) *to++ = gain * from[c];
  }
  return sums;
}

template <class Visit>
void Host::ReplicaSums::for_each_of(std::size_t host, Visit visit) const {
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

std::int64_t Host::ReplicaSums::named_of(std::size_t host) const {
  std::int64_t named = 0;
  for_each_of(host, [&](std::int64_t, const float*) { ++named; });
  return named;
}

/// Sends the owners what each replica adds to their rows.
void Host::exchange_sums(std::span<const ReplicaSums> sums) {
  const auto bytes = messages_.take_zeros<std::int64_t>(exchange_->hosts());
  for (std::size_t host = 0; host < bytes.size(); ++host) {
    for (const ReplicaSums& sum : sums) {
      const std::int64_t named = sum.named_of(host);
      bytes[host] += message_bytes<std::int64_t>(1) + message_bytes<std::uint32_t>(named) +
                     message_bytes<float>(named * sum.dim);
    }
  }
  received_sums_ = swap_messages(bytes, [&](std::size_t host, MessageWriter& writer) {
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

void Host::collect_entries(Tables& tables, Step& step) {
  HostStep& mine = of(step);
  const auto readers = mine.memory.take<MessageReader>(exchange_->hosts());
  for (std::size_t host = 0; host < readers.size(); ++host)
    readers[host] = MessageReader(received_sums_[host]);
  for (std::size_t t = 0; t < assembly_.tables.size(); ++t) {
    const StoredTable& table = tables.tables()[t];
    std::vector<GradientPiece>& pieces = pieces_[t];
    pieces.clear();
    const auto features = static_cast<std::int64_t>(assembly_.tables[t].features.size());
    const auto sources =
        mine.memory.take<EntrySource>(replicas_per_host_ * (exchange_->hosts() - 1 + features));
    auto source = sources.begin();
    bool gain = false;
    for (std::int32_t r = 0; r < exchange_->hosts() * replicas_per_host_; ++r) {
      const auto host = static_cast<std::size_t>(r / replicas_per_host_);
      MessageReader& reader = readers[host];
      const std::int64_t named = reader.number();
      const std::span<const std::uint32_t> index = reader.array<std::uint32_t>(named);
      const float* rows = reader.array<float>(named * table.dim).data();
      if (r / replicas_per_host_ != exchange_->host()) {
        *source++ = {nullptr, mine.route[t].owed[host], index,
                     static_cast<std::int64_t>(pieces.size())};
        append_pieces(rows, named, table.dim, r, pieces);
        continue;
      }
      for (const std::int64_t feature : assembly_.tables[t].features) {
        gain |= step.plan(r, feature).has_gain();
        *source++ = {&step.plan(r, feature), {}, {}, static_cast<std::int64_t>(pieces.size())};
        append_pieces(step, r, feature, table.dim, pieces);
      }
    }
    check_pieces(table, static_cast<std::int64_t>(pieces.size()));
    UpdatePlan& update = mine.update[t];
    update.wide = table.wide();
    update.piece = pieces;
    const std::int32_t buckets = step.buckets[t];
    update.wide ? place_entries<std::uint64_t>(update, sources, buckets, gain, mine.memory)
                : place_entries<std::uint32_t>(update, sources, buckets, gain, mine.memory);
  }
}

}  // namespace embertable::engine
