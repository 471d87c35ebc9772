// What more than one host adds to a forward: rows of others are asked for and fetched before the
// lookup.
#include <algorithm>

#include "engine/host.h"

namespace embertable::engine {
namespace {

using Plans = std::span<LookupPlan* const>;

/// Distinct rows of the whole table, rising, and what each becomes on this host: its own local row,
/// or the received bit and a place in the receive buffer.
struct Translation {
  std::span<std::uint64_t> row;
  std::span<std::uint64_t> code;
};

template <class Index>
std::uint64_t* append_rows(const LookupPlan& plan, std::uint64_t* at) {
  const Index* row = plan.row.as<Index>();
  return std::copy(row, row + plan.row.size, at);
}

/// The rows that the plans name, each once.
Translation distinct_rows(Plans plans, Arena& memory) {
  std::int64_t entries = 0;
  for (const LookupPlan* plan : plans) entries += plan->row.size;
  const std::span<std::uint64_t> all = memory.take<std::uint64_t>(entries);
  std::uint64_t* end = all.data();
  for (const LookupPlan* plan : plans) {
    end = plan->row.wide ? append_rows<std::uint64_t>(*plan, end)
                         : append_rows<std::uint32_t>(*plan, end);
  }
  std::sort(all.data(), end);
  const auto distinct = static_cast<std::size_t>(std::unique(all.data(), end) - all.data());
  return {all.first(distinct), memory.take<std::uint64_t>(static_cast<std::int64_t>(distinct))};
}

/// Makes room for what is asked of each host but this one.
void count_asked(const Placement& placement, std::int32_t me, const Translation& rows,
                 TableRoute& route, Arena& memory) {
  const auto hosts = static_cast<std::size_t>(placement.hosts());
  const std::span<std::int64_t> count = memory.take_zeros<std::int64_t>(placement.hosts());
  for (const std::uint64_t row : rows.row)
    ++count[placement.host_of(static_cast<std::int64_t>(row))];
  count[me] = 0;
  route.asked.assign(hosts, {});
  route.received_first = memory.take<std::int64_t>(placement.hosts() + 1);
  route.received_first.front() = 0;
  for (std::size_t host = 0; host < hosts; ++host) {
    route.asked[host] = memory.take<std::uint64_t>(count[host]);
    route.received_first[host + 1] = route.received_first[host] + count[host];
  }
}

/// Own rows become local ones, the others go on the lists of what is asked.
void route_rows(const Placement& placement, std::int32_t me, Translation& rows, TableRoute& route,
                Arena& memory) {
  count_asked(placement, me, rows, route, memory);
  const std::span<std::size_t> asked = memory.take_zeros<std::size_t>(placement.hosts());
  for (std::size_t i = 0; i < rows.row.size(); ++i) {
    const auto row = static_cast<std::int64_t>(rows.row[i]);
    const auto local = static_cast<std::uint64_t>(placement.local_row(row));
    const std::int32_t host = placement.host_of(row);
    const auto owner = static_cast<std::size_t>(host);
    rows.code[i] = local;
    if (host == me) continue;
    rows.code[i] = kReceivedBit<std::uint64_t> |
                   (static_cast<std::uint64_t>(route.received_first[owner]) + asked[owner]);
    route.asked[owner][asked[owner]++] = local;
  }
}

template <class Index>
void translate_rows(LookupPlan& plan, const Translation& rows) {
  constexpr std::uint64_t kReceived = kReceivedBit<std::uint64_t>;
  Index* row = plan.row.as<Index>();
  for (std::int64_t i = 0; i < plan.row.size; ++i) {
    const auto found = std::lower_bound(rows.row.begin(), rows.row.end(), std::uint64_t{row[i]});
    const std::uint64_t code = rows.code[found - rows.row.begin()];
    row[i] =
        static_cast<Index>(code & ~kReceived) | (code & kReceived ? kReceivedBit<Index> : Index{0});
  }
}

void translate(Plans plans, const Translation& rows) {
  for (LookupPlan* plan : plans) {
    plan->row.wide ? translate_rows<std::uint64_t>(*plan, rows)
                   : translate_rows<std::uint32_t>(*plan, rows);
  }
}

std::int64_t size_of(std::span<const std::uint64_t> rows) {
  return static_cast<std::int64_t>(rows.size());
}

}  // namespace

void Host::ask_owners(Tables& tables, Step& step) {
  HostStep& mine = of(step);
  mine.route.resize(assembly_.tables.size());
  for (std::size_t t = 0; t < mine.route.size(); ++t) {
    const auto features = static_cast<std::int64_t>(assembly_.tables[t].features.size());
    const auto plans = mine.memory.take<LookupPlan*>(replicas_per_host_ * features);
    auto plan = plans.begin();
    for_each_source(
        t, [&](std::int32_t r, std::int64_t feature) { *plan++ = &step.plan(r, feature); });
    Translation rows = distinct_rows(plans, mine.memory);
    route_rows(tables.tables()[t].placement, exchange_->host(), rows, mine.route[t], mine.memory);
    translate(plans, rows);
  }
  exchange_questions(mine);
  for (std::size_t t = 0; t < mine.route.size(); ++t) check_update_size(tables, step, t);
}

/// Tells every host which of its rows are needed here, and hears the same.
void Host::exchange_questions(HostStep& mine) {
  messages_.reset();
  const auto bytes = messages_.take_zeros<std::int64_t>(exchange_->hosts());
  for (std::size_t host = 0; host < bytes.size(); ++host) {
    for (const TableRoute& route : mine.route)
      bytes[host] +=
          message_bytes<std::int64_t>(1) + message_bytes<std::uint64_t>(size_of(route.asked[host]));
  }
  const std::span<const ByteSpan> received = swap_messages(bytes, [&](std::size_t host,
                                                                      MessageWriter& writer) {
    for (const TableRoute& route : mine.route) {
      const std::span<const std::uint64_t> asked = route.asked[host];
      writer.number(size_of(asked));
      std::copy(asked.begin(), asked.end(), writer.array<std::uint64_t>(size_of(asked)).begin());
    }
  });
  for (TableRoute& route : mine.route) route.owed.assign(bytes.size(), {});
  for (std::size_t host = 0; host < bytes.size(); ++host) {
    MessageReader reader(received[host]);
    for (TableRoute& route : mine.route) {
      const std::span<const std::uint64_t> rows = reader.array<std::uint64_t>(reader.number());
      const std::span<std::uint64_t> kept = mine.memory.take<std::uint64_t>(size_of(rows));
      std::copy(rows.begin(), rows.end(), kept.begin());
      route.owed[host] = kept;
    }
  }
}

void Host::fetch_rows(Tables& tables, Step& step) {
  HostStep& mine = of(step);
  const auto me = static_cast<std::size_t>(exchange_->host());
  messages_.reset();
  const auto bytes = messages_.take_zeros<std::int64_t>(exchange_->hosts());
  for (std::size_t host = 0; host < bytes.size(); ++host) {
    for (std::size_t t = 0; t < mine.route.size(); ++t)
      bytes[host] +=
          message_bytes<float>(size_of(mine.route[t].owed[host]) * tables.tables()[t].dim);
  }
  const std::span<const ByteSpan> received =
      swap_messages(bytes, [&](std::size_t host, MessageWriter& writer) {
        for (std::size_t t = 0; t < mine.route.size(); ++t) {
          const Shard& shard = tables.tables()[t].shards[me];
          const std::span<const std::uint64_t> owed = mine.route[t].owed[host];
          float* out = writer.array<float>(size_of(owed) * shard.dim()).data();
          for (const std::uint64_t row : owed)
            out = std::copy_n(shard.at(-1, static_cast<std::int64_t>(row)), shard.dim(), out);
        }
      });
  for (std::size_t t = 0; t < mine.route.size(); ++t)
    mine.route[t].received =
        mine.memory.take<float>(mine.route[t].received_first.back() * tables.tables()[t].dim);
  for (std::size_t host = 0; host < bytes.size(); ++host) {
    MessageReader reader(received[host]);
    for (std::size_t t = 0; t < mine.route.size(); ++t) {
      TableRoute& route = mine.route[t];
      const std::int64_t dim = tables.tables()[t].dim;
      const std::span<const float> rows = reader.array<float>(size_of(route.asked[host]) * dim);
      std::copy(rows.begin(), rows.end(),
                route.received.begin() + route.received_first[host] * dim);
    }
  }
}

std::int64_t Host::row_of(const Tables& tables, Step& step, std::size_t table,
                          const LookupPlan& plan, std::int64_t entry) const {
  const bool wide = plan.row.wide;
  const std::uint64_t row = wide ? plan.row.as<std::uint64_t>()[entry]
                                 : std::uint64_t{plan.row.as<std::uint32_t>()[entry]};
  const std::uint64_t received =
      wide ? kReceivedBit<std::uint64_t> : std::uint64_t{kReceivedBit<std::uint32_t>};
  const Placement& placement = tables.tables()[table].placement;
  if (alone()) return static_cast<std::int64_t>(row);
  if ((row & received) == 0)
    return placement.global_row(exchange_->host(), static_cast<std::int64_t>(row));
  const TableRoute& route = of(step).route[table];
  auto place = static_cast<std::int64_t>(row & ~received);
  std::size_t host = 0;
  while (place >= route.received_first[host + 1]) ++host;
  place -= route.received_first[host];
  return placement.global_row(static_cast<std::int32_t>(host),
                              static_cast<std::int64_t>(route.asked[host][place]));
}

}  // namespace embertable::engine
