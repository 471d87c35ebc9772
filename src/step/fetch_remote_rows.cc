#include "step/fetch_remote_rows.h"

#include <algorithm>

namespace embertable {
namespace {

/// Distinct rows of the whole table, rising, and the number of each on this host: its local row, or
/// the received bit and a place in the receive buffer.
struct Translation {
  std::span<std::uint64_t> row;
  std::span<std::uint64_t> code;
};

template <class Index>
std::uint64_t* append_rows(const LookupPlan& plan, std::uint64_t* at) {
  const Index* row = plan.row.as<Index>();
  return std::copy(row, row + plan.row.size, at);
}

/// Returns the rows that a table's entries name, each once.
Translation distinct_rows(const TableRun& table, Arena& memory) {
  const std::span<std::uint64_t> all = memory.take<std::uint64_t>(table.entries());
  std::uint64_t* end = all.data();
  for (const FeatureRun& feature : table.features)
    end = feature.plan->row.wide ? append_rows<std::uint64_t>(*feature.plan, end)
                                 : append_rows<std::uint32_t>(*feature.plan, end);
  std::sort(all.data(), end);
  const auto distinct = static_cast<std::size_t>(std::unique(all.data(), end) - all.data());
  return {all.first(distinct), memory.take<std::uint64_t>(static_cast<std::int64_t>(distinct))};
}

/// Makes room for the rows that are asked of each other host.
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

/// Turns own rows into local ones, and lists the others by the host that is asked.
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

/// Makes every table's entries name local rows and places in the receive buffer, and lists what is
/// asked of the others.
void route_tables(HostStep& step, std::int32_t me) {
  for (TableRun& table : step.tables) {
    Translation rows = distinct_rows(table, step.memory);
    route_rows(*table.placement, me, rows, table.route, step.memory);
    for (const FeatureRun& feature : table.features)
      feature.plan->row.wide ? translate_rows<std::uint64_t>(*feature.plan, rows)
                             : translate_rows<std::uint32_t>(*feature.plan, rows);
  }
}

/// Tells every host which of its rows are needed here, and hears the same.
void exchange_questions(HostStep& step, Messages& messages) {
  messages.memory().reset();
  const auto bytes = messages.memory().take_zeros<std::int64_t>(messages.hosts());
  for (std::size_t host = 0; host < bytes.size(); ++host)
    for (const TableRun& table : step.tables)
      bytes[host] += message_bytes<std::int64_t>(1) +
                     message_bytes<std::uint64_t>(std::ssize(table.route.asked[host]));
  const std::span<const ByteSpan> received =
      messages.swap(bytes, [&](std::size_t host, MessageWriter& writer) {
        for (const TableRun& table : step.tables) {
          const std::span<const std::uint64_t> asked = table.route.asked[host];
          writer.number(std::ssize(asked));
          std::ranges::copy(asked, writer.array<std::uint64_t>(std::ssize(asked)).begin());
        }
      });
  for (TableRun& table : step.tables) table.route.owed.assign(bytes.size(), {});
  for (std::size_t host = 0; host < bytes.size(); ++host) {
    MessageReader reader(received[host]);
    for (TableRun& table : step.tables) {
      const std::span<const std::uint64_t> rows = reader.array<std::uint64_t>(reader.number());
      const std::span<std::uint64_t> kept = step.memory.take<std::uint64_t>(std::ssize(rows));
      std::ranges::copy(rows, kept.begin());
      table.route.owed[host] = kept;
    }
  }
}

/// Sends every host the rows that it asked for, and receives those that were asked of others.
void exchange_rows(HostStep& step, Messages& messages) {
  messages.memory().reset();
  const auto bytes = messages.memory().take_zeros<std::int64_t>(messages.hosts());
  for (std::size_t host = 0; host < bytes.size(); ++host)
    for (const TableRun& table : step.tables)
      bytes[host] += message_bytes<float>(std::ssize(table.route.owed[host]) * table.rows.dim);
  const std::span<const ByteSpan> received =
      messages.swap(bytes, [&](std::size_t host, MessageWriter& writer) {
        for (const TableRun& table : step.tables) {
          const RowBlock& rows = table.rows;
          const std::span<const std::uint64_t> owed = table.route.owed[host];
          float* out = writer.array<float>(std::ssize(owed) * rows.dim).data();
          for (const std::uint64_t row : owed)
            out =
                std::copy_n(rows.row + static_cast<std::int64_t>(row) * rows.stride, rows.dim, out);
        }
      });
  for (TableRun& table : step.tables)
    table.route.received =
        step.memory.take<float>(table.route.received_first.back() * table.rows.dim);
  for (std::size_t host = 0; host < bytes.size(); ++host) {
    MessageReader reader(received[host]);
    for (TableRun& table : step.tables) {
      TableRoute& route = table.route;
      const std::int64_t dim = table.rows.dim;
      const std::span<const float> rows = reader.array<float>(std::ssize(route.asked[host]) * dim);
      std::ranges::copy(rows, route.received.begin() + route.received_first[host] * dim);
    }
  }
}

}  // namespace

void fetch_remote_rows(HostStep& step, Messages& messages) {
  route_tables(step, messages.host());
  exchange_questions(step, messages);
  for (const TableRun& table : step.tables) check_update_size(table, step.replicas_per_host);
  exchange_rows(step, messages);
}

std::int64_t global_row(const Placement& placement, const TableRoute& route, std::int32_t host,
                        const LookupPlan& plan, std::int64_t entry) {
  const bool wide = plan.row.wide;
  const std::uint64_t row = wide ? plan.row.as<std::uint64_t>()[entry]
                                 : std::uint64_t{plan.row.as<std::uint32_t>()[entry]};
  const std::uint64_t received =
      wide ? kReceivedBit<std::uint64_t> : std::uint64_t{kReceivedBit<std::uint32_t>};
  if ((row & received) == 0) return placement.global_row(host, static_cast<std::int64_t>(row));
  auto place = static_cast<std::int64_t>(row & ~received);
  std::int32_t owner = 0;
  while (place >= route.received_first[owner + 1]) ++owner;
  place -= route.received_first[owner];
  return placement.global_row(owner, static_cast<std::int64_t>(route.asked[owner][place]));
}

}  // namespace embertable
