// What more than one host adds to a step: rows of others are asked for and fetched before the
// lookup, gradients of their rows are summed per replica and sent before the update.
#include <algorithm>
#include <cstring>

#include "base/assert.h"
#include "engine/host.h"

namespace embertable::engine {
namespace {

using Bytes = std::span<std::byte>;

/// Writes numbers and floats into a message of known size, every array on an 8-byte border.
class Writer {
 public:
  explicit Writer(Bytes bytes) : bytes_(bytes) {}

  template <class T>
  std::span<T> array(std::int64_t count) {
    const std::span<T> place(reinterpret_cast<T*>(bytes_.data() + at_),
                             static_cast<std::size_t>(count));
    at_ += padded<T>(count);
    return place;
  }
  void number(std::int64_t value) { array<std::int64_t>(1)[0] = value; }

  template <class T>
  static std::int64_t padded(std::int64_t count) {
    return (count * static_cast<std::int64_t>(sizeof(T)) + 7) / 8 * 8;
  }

 private:
  Bytes bytes_;
  std::int64_t at_ = 0;
};

class Reader {
 public:
  explicit Reader(ByteSpan bytes) : bytes_(bytes) {}

  template <class T>
  std::span<const T> array(std::int64_t count) {
    EMBERTABLE_ASSERT(at_ + Writer::padded<T>(count) <= static_cast<std::int64_t>(bytes_.size()));
    const std::span<const T> place(reinterpret_cast<const T*>(bytes_.data() + at_),
                                   static_cast<std::size_t>(count));
    at_ += Writer::padded<T>(count);
    return place;
  }
  std::int64_t number() { return array<std::int64_t>(1)[0]; }

 private:
  ByteSpan bytes_;
  std::int64_t at_ = 0;
};

/// Distinct rows of the whole table, rising, and what each becomes on this host: its own local row,
/// or the received bit and a place in the receive buffer.
struct Translation {
  std::span<std::uint64_t> row;
  std::span<std::uint64_t> code;
};

template <class Index>
void append_rows(const LookupPlan& plan, std::uint64_t*& at) {
  const Index* row = plan.row.as<Index>();
  at = std::copy(row, row + plan.row.size, at);
}

template <class Index>
void translate_rows(LookupPlan& plan, const Translation& translation) {
  constexpr std::uint64_t kReceived = kReceivedBit<std::uint64_t>;
  Index* row = plan.row.as<Index>();
  for (std::int64_t i = 0; i < plan.row.size; ++i) {
    const auto found =
        std::lower_bound(translation.row.begin(), translation.row.end(), std::uint64_t{row[i]});
    const std::uint64_t code =
        translation.code[static_cast<std::size_t>(found - translation.row.begin())];
    row[i] =
        static_cast<Index>(code & ~kReceived) | (code & kReceived ? kReceivedBit<Index> : Index{0});
  }
}

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

std::int64_t pieces_for(std::int64_t rows) { return (rows + kPieceRows - 1) / kPieceRows; }

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

/// A stable counting scatter of all sources into buckets.
template <class Index>
void place_entries(UpdatePlan& update, std::span<const EntrySource> sources, std::int32_t buckets,
                   bool gain, Arena& memory) {
  update.bucket = memory.take<std::int64_t>(buckets + 1);
  std::fill(update.bucket.begin(), update.bucket.end(), 0);
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

void Host::ask_owners(Tables& tables, Step& step) {
  HostStep& mine = of(step);
  const auto hosts = static_cast<std::size_t>(exchange_->hosts());
  const auto me = static_cast<std::size_t>(exchange_->host());
  mine.route.resize(assembly_.tables.size());
  std::vector<std::int64_t> bytes(hosts);
  for (std::size_t t = 0; t < assembly_.tables.size(); ++t) {
    const StoredTable& table = tables.tables()[t];
    TableRoute& route = mine.route[t];
    route.asked.assign(hosts, {});
    std::int64_t entries = 0;
    for (const std::int64_t feature : assembly_.tables[t].features)
      for (std::int32_t r = 0; r < replicas_per_host_; ++r)
        entries += step.plan(first_replica() + r, feature).row.size;
    Translation all{mine.memory.take<std::uint64_t>(entries), {}};
    std::uint64_t* end = all.row.data();
    for (const std::int64_t feature : assembly_.tables[t].features) {
      for (std::int32_t r = 0; r < replicas_per_host_; ++r) {
        const LookupPlan& plan = step.plan(first_replica() + r, feature);
        plan.row.wide ? append_rows<std::uint64_t>(plan, end)
                      : append_rows<std::uint32_t>(plan, end);
      }
    }
    std::sort(all.row.begin(), all.row.end());
    all.row = all.row.first(
        static_cast<std::size_t>(std::unique(all.row.begin(), all.row.end()) - all.row.begin()));
    all.code = mine.memory.take<std::uint64_t>(static_cast<std::int64_t>(all.row.size()));

    route.received_first = mine.memory.take<std::int64_t>(static_cast<std::int64_t>(hosts) + 1);
    std::fill(route.received_first.begin(), route.received_first.end(), 0);
    std::vector<std::int64_t> count(hosts);
    for (const std::uint64_t row : all.row)
      ++count[static_cast<std::size_t>(table.placement.host_of(static_cast<std::int64_t>(row)))];
    for (std::size_t host = 0; host < hosts; ++host) {
      route.asked[host] = mine.memory.take<std::uint64_t>(host == me ? 0 : count[host]);
      route.received_first[host + 1] =
          route.received_first[host] + static_cast<std::int64_t>(route.asked[host].size());
      count[host] = 0;
      bytes[host] +=
          8 + Writer::padded<std::uint64_t>(static_cast<std::int64_t>(route.asked[host].size()));
    }
    for (std::size_t i = 0; i < all.row.size(); ++i) {
      const auto row = static_cast<std::int64_t>(all.row[i]);
      const auto owner = static_cast<std::size_t>(table.placement.host_of(row));
      const auto local = static_cast<std::uint64_t>(table.placement.local_row(row));
      if (owner == me) {
        all.code[i] = local;
      } else {
        const std::int64_t place = count[owner]++;
        route.asked[owner][static_cast<std::size_t>(place)] = local;
        all.code[i] = kReceivedBit<std::uint64_t> |
                      static_cast<std::uint64_t>(route.received_first[owner] + place);
      }
    }
    for (const std::int64_t feature : assembly_.tables[t].features) {
      for (std::int32_t r = 0; r < replicas_per_host_; ++r) {
        LookupPlan& plan = step.plan(first_replica() + r, feature);
        plan.row.wide ? translate_rows<std::uint64_t>(plan, all)
                      : translate_rows<std::uint32_t>(plan, all);
      }
    }
  }

  messages_.reset();
  std::vector<ByteSpan> send(hosts), received(hosts);
  for (std::size_t host = 0; host < hosts; ++host) {
    const Bytes message = messages_.take<std::byte>(bytes[host]);
    Writer writer(message);
    for (const TableRoute& route : mine.route) {
      const std::span<const std::uint64_t> asked = route.asked[host];
      writer.number(static_cast<std::int64_t>(asked.size()));
      std::copy(asked.begin(), asked.end(),
                writer.array<std::uint64_t>(static_cast<std::int64_t>(asked.size())).begin());
    }
    send[host] = message;
  }
  exchange_->all_to_all(send, received);
  for (TableRoute& route : mine.route) route.owed.assign(hosts, {});
  for (std::size_t host = 0; host < hosts; ++host) {
    Reader reader(received[host]);
    for (TableRoute& route : mine.route) {
      const std::span<const std::uint64_t> rows = reader.array<std::uint64_t>(reader.number());
      const std::span<std::uint64_t> kept =
          mine.memory.take<std::uint64_t>(static_cast<std::int64_t>(rows.size()));
      std::copy(rows.begin(), rows.end(), kept.begin());
      route.owed[host] = kept;
    }
  }
}

void Host::fetch_rows(Tables& tables, Step& step) {
  HostStep& mine = of(step);
  const auto hosts = static_cast<std::size_t>(exchange_->hosts());
  const auto me = static_cast<std::size_t>(exchange_->host());
  messages_.reset();
  std::vector<ByteSpan> send(hosts), received(hosts);
  for (std::size_t host = 0; host < hosts; ++host) {
    std::int64_t bytes = 0;
    for (std::size_t t = 0; t < mine.route.size(); ++t)
      bytes += Writer::padded<float>(static_cast<std::int64_t>(mine.route[t].owed[host].size()) *
                                     tables.tables()[t].dim);
    const Bytes message = messages_.take<std::byte>(bytes);
    Writer writer(message);
    for (std::size_t t = 0; t < mine.route.size(); ++t) {
      const Shard& shard = tables.tables()[t].shards[me];
      const std::span<const std::uint64_t> owed = mine.route[t].owed[host];
      float* out = writer.array<float>(static_cast<std::int64_t>(owed.size()) * shard.dim()).data();
      for (const std::uint64_t row : owed)
        out = std::copy_n(shard.at(-1, static_cast<std::int64_t>(row)), shard.dim(), out);
    }
    send[host] = message;
  }
  exchange_->all_to_all(send, received);
  for (std::size_t t = 0; t < mine.route.size(); ++t)
    mine.route[t].received =
        mine.memory.take<float>(mine.route[t].received_first.back() * tables.tables()[t].dim);
  for (std::size_t host = 0; host < hosts; ++host) {
    Reader reader(received[host]);
    for (std::size_t t = 0; t < mine.route.size(); ++t) {
      TableRoute& route = mine.route[t];
      const std::int64_t dim = tables.tables()[t].dim;
      const std::span<const float> rows =
          reader.array<float>(static_cast<std::int64_t>(route.asked[host].size()) * dim);
      std::copy(rows.begin(), rows.end(),
                route.received.begin() + route.received_first[host] * dim);
    }
  }
}

void Host::sum_for_owners(Tables& tables, Step& step) {
  HostStep& mine = of(step);
  const auto hosts = static_cast<std::size_t>(exchange_->hosts());
  messages_.reset();
  struct Sums {                     // of one table and one replica
    std::span<float> row;           // [received rows, dim]
    std::span<std::uint8_t> named;  // which of them the replica named
  };
  std::vector<Sums> sums;
  std::vector<std::int64_t> bytes(hosts);
  mine.update.assign(assembly_.tables.size(), UpdatePlan{});
  for (std::size_t t = 0; t < assembly_.tables.size(); ++t) {
    const StoredTable& table = tables.tables()[t];
    const TableRoute& route = mine.route[t];
    const std::int64_t rows = route.received_first.back();
    for (std::int32_t r = first_replica(); r < first_replica() + replicas_per_host_; ++r) {
      Sums sum{messages_.take<float>(rows * table.dim), messages_.take<std::uint8_t>(rows)};
      std::fill(sum.named.begin(), sum.named.end(), std::uint8_t{0});
      static constexpr float kZeros[TableConfig::kMaxDim] = {};
      std::vector<GradientPiece> pieces;
      std::vector<UpdateEntry<std::uint32_t>> entries;
      std::vector<float> gains;
      for (const std::int64_t feature : assembly_.tables[t].features) {
        const LookupPlan& plan = step.plan(r, feature);
        const auto base = static_cast<std::int64_t>(pieces.size()) * kPieceRows;
        const float* gradient = step.gradient[static_cast<std::size_t>(r * features() + feature)];
        for (std::int64_t first = 0; first < plan.outputs; first += kPieceRows)
          pieces.push_back(gradient ? GradientPiece{gradient + first * table.dim, table.dim, r}
                                    : GradientPiece{kZeros, 0, r});
        for_each_entry(plan, true, [&](std::uint64_t row, std::int64_t output, std::int64_t k) {
          sum.named[row] = 1;
          entries.push_back(
              {static_cast<std::uint32_t>(row), static_cast<std::uint32_t>(base + output)});
          gains.push_back(plan.gain(output, k));
        });
      }
      std::int64_t bucket[2] = {0, static_cast<std::int64_t>(entries.size())};
      UpdatePlan plan{false, entries.data(), gains.data(), bucket, pieces, nullptr};
      TableUpdate update;
      update.rows.row = sum.row.data();
      update.rows.stride = table.dim;
      update.rows.dim = table.dim;
      update.rows.rows = rows;
      update.update_rows = store_sums;
      update.plan = &plan;
      update.gradients = {pieces.data(), nullptr, 0, pieces.size() <= 1};
      scratch_.front().reserve(bucket[1], false, table.dim);
      if (!entries.empty()) update_bucket(update, 0, scratch_.front(), level_);
      for (std::size_t host = 0; host < hosts; ++host) {
        const auto named = std::count(sum.named.begin() + route.received_first[host],
                                      sum.named.begin() + route.received_first[host + 1], 1);
        bytes[host] +=
            8 + Writer::padded<std::uint32_t>(named) + Writer::padded<float>(named * table.dim);
      }
      sums.push_back(sum);
    }
  }

  std::vector<ByteSpan> send(hosts), received(hosts);
  for (std::size_t host = 0; host < hosts; ++host) {
    const Bytes message = messages_.take<std::byte>(bytes[host]);
    Writer writer(message);
    for (std::size_t s = 0; s < sums.size(); ++s) {
      const std::size_t t = s / static_cast<std::size_t>(replicas_per_host_);
      const std::int64_t dim = tables.tables()[t].dim;
      const std::int64_t first = mine.route[t].received_first[host],
                         last = mine.route[t].received_first[host + 1];
      const auto named = std::count(sums[s].named.begin() + first, sums[s].named.begin() + last, 1);
      writer.number(named);
      std::uint32_t* index = writer.array<std::uint32_t>(named).data();
      float* row = writer.array<float>(named * dim).data();
      for (std::int64_t i = first; i < last; ++i) {
        if (!sums[s].named[static_cast<std::size_t>(i)]) continue;
        *index++ = static_cast<std::uint32_t>(i - first);
        row = std::copy_n(sums[s].row.data() + i * dim, dim, row);
      }
    }
    send[host] = message;
  }
  exchange_->all_to_all(send, received);
  std::copy(received.begin(), received.end(), std::back_inserter(received_sums_));
}

void Host::collect_entries(Tables& tables, Step& step) {
  HostStep& mine = of(step);
  const std::int32_t hosts = exchange_->hosts();
  static constexpr float kZeros[TableConfig::kMaxDim] = {};
  std::vector<Reader> readers;
  for (const ByteSpan message : received_sums_) readers.emplace_back(message);
  received_sums_.clear();
  for (std::size_t t = 0; t < assembly_.tables.size(); ++t) {
    const StoredTable& table = tables.tables()[t];
    std::vector<GradientPiece>& pieces = pieces_[t];
    pieces.clear();
    std::vector<EntrySource> sources;
    bool gain = false;
    for (std::int32_t host = 0; host < hosts; ++host) {
      Reader& reader = readers[static_cast<std::size_t>(host)];
      for (std::int32_t r = host * replicas_per_host_; r < (host + 1) * replicas_per_host_; ++r) {
        const std::int64_t named = reader.number();
        EntrySource remote{nullptr, mine.route[t].owed[static_cast<std::size_t>(host)],
                           reader.array<std::uint32_t>(named),
                           static_cast<std::int64_t>(pieces.size())};
        const float* rows = reader.array<float>(named * table.dim).data();
        if (host != exchange_->host()) {
          sources.push_back(remote);
          for (std::int64_t piece = 0; piece < pieces_for(named); ++piece)
            pieces.push_back({rows + piece * kPieceRows * table.dim, table.dim, r});
          continue;
        }
        for (const std::int64_t feature : assembly_.tables[t].features) {
          const LookupPlan& plan = step.plan(r, feature);
          gain |= plan.has_gain();
          sources.push_back({&plan, {}, {}, static_cast<std::int64_t>(pieces.size())});
          const float* gradient = step.gradient[static_cast<std::size_t>(r * features() + feature)];
          for (std::int64_t first = 0; first < plan.outputs; first += kPieceRows)
            pieces.push_back(gradient ? GradientPiece{gradient + first * table.dim, table.dim, r}
                                      : GradientPiece{kZeros, 0, r});
        }
      }
    }
    UpdatePlan& update = mine.update[t];
    update.wide = table.wide();
    update.piece = pieces;
    const std::int32_t buckets = step.buckets[t];
    update.wide ? place_entries<std::uint64_t>(update, sources, buckets, gain, mine.memory)
                : place_entries<std::uint32_t>(update, sources, buckets, gain, mine.memory);
  }
}

}  // namespace embertable::engine
