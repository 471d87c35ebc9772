#include "engine/host_rows.h"

#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "step/message.h"

namespace embertable::engine {
namespace {

using Positions = std::vector<std::vector<std::int64_t>>;

/// The rows that a call names.
struct NamedRows {
  Tables::Variable variable;
  std::vector<std::int64_t> rows;
};

/// Returns the positions of rows by the host that `me` reads them from.
Positions by_source(const Placement& placement, std::int32_t me,
                    std::span<const std::int64_t> rows) {
  Positions positions(placement.hosts());
  for (std::int64_t i = 0; i < std::ssize(rows); ++i)
    positions[placement.host_of(rows[i], me)].push_back(i);
  return positions;
}

/// Returns the positions of rows by the hosts that hold them.
Positions by_holder(const Placement& placement, std::span<const std::int64_t> rows) {
  if (!placement.replicated()) return by_source(placement, 0, rows);
  std::vector<std::int64_t> all(rows.size());
  std::iota(all.begin(), all.end(), 0);
  return Positions(placement.hosts(), all);
}

/// Writes their number and the rows at these positions.
void write_rows(MessageWriter& writer, std::span<const std::int64_t> rows,
                std::span<const std::int64_t> positions) {
  writer.number(std::ssize(positions));
  std::ranges::transform(positions, writer.array<std::int64_t>(std::ssize(positions)).begin(),
                         [&](std::int64_t position) { return rows[position]; });
}

/// Reads the numbers of rows that this host, `me`, holds. Throws IoError for others.
std::span<const std::int64_t> rows_held(MessageReader& message, const StoredTable& table,
                                        std::int32_t me) {
  const auto rows =
      message.array<std::int64_t>(message.number(std::numeric_limits<std::int64_t>::max()));
  for (const std::int64_t row : rows)
    if (row < 0 || row >= table.vocabulary_size || table.placement.host_of(row, me) != me)
      message.refuse("a row must be one of '" + table.name + "' that host " + std::to_string(me) +
                     " holds, got " + std::to_string(row));
  return rows;
}

/// Finds the variable and checks what this process asks of it.
NamedRows find(const Tables& tables, std::string_view name, IntegerSpan ids, std::int64_t values) {
  const Tables::Variable variable = tables.find(name);
  return {variable, Tables::checked_rows(variable, ids, values)};
}

/// Does so on every host; the variable must be the same on all.
NamedRows find_together(HostGroup& hosts, std::string_view call, const Tables& tables,
                        std::string_view name, IntegerSpan ids, std::int64_t values) {
  NamedRows named;
  const std::string stage = std::string(call) + " of '" + std::string(name) + "'";
  hosts.together(stage, [&] { named = find(tables, name, ids, values); });
  return named;
}

}  // namespace

void read_rows(HostGroup& hosts, const Tables& tables, std::string_view name, IntegerSpan ids,
               std::span<float> out) {
  if (!hosts.several()) {
    const NamedRows named = find(tables, name, ids, std::ssize(out));
    return tables.read_rows(named.variable, named.rows, out);
  }
  const NamedRows named = find_together(hosts, "read_rows", tables, name, ids, std::ssize(out));
  const Tables::Variable& variable = named.variable;
  const std::vector<std::int64_t>& rows = named.rows;
  hosts.together("read_rows", [&] {
    const Positions positions = by_source(variable.table->placement, hosts.exchange().host(), rows);
    Messages questions(hosts.exchange()), answers(hosts.exchange());
    const auto count = questions.memory().take<std::int64_t>(questions.hosts());
    for (std::size_t host = 0; host < count.size(); ++host)
      count[host] = message_bytes<std::int64_t>(1 + std::ssize(positions[host]));
    const std::span<MessageReader> asked = questions.swap(
        "numbers of rows to read", count, [&](std::size_t host, MessageWriter& writer) {
          write_rows(writer, rows, positions[host]);
        });
    std::vector<std::vector<std::int64_t>> owed;
    for (MessageReader& message : asked) {
      const auto held = rows_held(message, *variable.table, questions.host());
      message.end();
      owed.emplace_back(held.begin(), held.end());
    }
    for (std::size_t host = 0; host < count.size(); ++host)
      count[host] = message_bytes<float>(std::ssize(owed[host]) * variable.width);
    const std::span<MessageReader> received =
        answers.swap("rows to read", count, [&](std::size_t host, MessageWriter& writer) {
          tables.read_rows(variable, owed[host],
                           writer.array<float>(std::ssize(owed[host]) * variable.width));
        });
    for (std::size_t host = 0; host < received.size(); ++host) {
      const float* row =
          received[host].array<float>(std::ssize(positions[host]) * variable.width).data();
      received[host].end();
      for (const std::int64_t position : positions[host]) {
        std::copy_n(row, variable.width, out.data() + position * variable.width);
        row += variable.width;
      }
    }
  });
}

void assign_rows(HostGroup& hosts, Tables& tables, std::string_view name, IntegerSpan ids,
                 std::span<const float> values) {
  if (!hosts.several()) {
    const NamedRows named = find(tables, name, ids, std::ssize(values));
    return tables.assign_rows(named.variable, named.rows, values);
  }
  const NamedRows named =
      find_together(hosts, "assign_rows", tables, name, ids, std::ssize(values));
  const Tables::Variable& variable = named.variable;
  const std::vector<std::int64_t>& rows = named.rows;
  hosts.together("assign_rows", [&] {
    const Positions positions = by_holder(variable.table->placement, rows);
    Messages messages(hosts.exchange());
    const auto count = messages.memory().take<std::int64_t>(messages.hosts());
    for (std::size_t host = 0; host < count.size(); ++host) {
      const auto sent_rows = std::ssize(positions[host]);
      count[host] = message_bytes<std::int64_t>(1 + sent_rows) +
                    message_bytes<float>(sent_rows * variable.width);
    }
    const std::span<MessageReader> sent =
        messages.swap("rows to assign", count, [&](std::size_t host, MessageWriter& writer) {
          write_rows(writer, rows, positions[host]);
          float* row = writer.array<float>(std::ssize(positions[host]) * variable.width).data();
          for (const std::int64_t position : positions[host])
            row = std::copy_n(values.data() + position * variable.width, variable.width, row);
        });
    struct Assigned {
      std::span<const std::int64_t> rows;
      std::span<const float> values;
    };
    std::vector<Assigned> all;  // read before a row changes
    for (MessageReader& message : sent) {
      const auto held = rows_held(message, *variable.table, messages.host());
      all.push_back({held, message.array<float>(std::ssize(held) * variable.width)});
      message.end();
    }
    for (const Assigned& each : all) tables.assign_rows(variable, each.rows, each.values);
  });
}

void copy_rows_to_first(HostGroup& hosts, const Tables& tables, const Tables::Variable& variable,
                        std::int64_t first, std::span<float> out) {
  const std::int64_t count = std::ssize(out) / variable.width;
  if (!hosts.several()) return tables.copy_rows(variable, first, count, out.data());
  const Placement& placement = variable.table->placement;
  const std::int32_t me = hosts.exchange().host();
  std::vector<std::int64_t> mine;
  for (std::int64_t row = first; row < first + count; ++row)
    if (placement.host_of(row, 0) == me) mine.push_back(row);
  Messages messages(hosts.exchange());
  const auto bytes = messages.memory().take_zeros<std::int64_t>(messages.hosts());
  bytes[0] = message_bytes<float>(std::ssize(mine) * variable.width);
  const std::span<MessageReader> received =
      messages.swap("rows to digest", bytes, [&](std::size_t host, MessageWriter& writer) {
        if (host == 0)
          tables.read_rows(variable, mine, writer.array<float>(std::ssize(mine) * variable.width));
      });
  if (me != 0) return;
  std::vector<std::int64_t> rows_from(received.size());
  for (std::int64_t i = 0; i < count; ++i) ++rows_from[placement.host_of(first + i, 0)];
  std::vector<const float*> next;
  for (std::size_t host = 0; host < received.size(); ++host) {
    next.push_back(received[host].array<float>(rows_from[host] * variable.width).data());
    received[host].end();
  }
  for (std::int64_t i = 0; i < count; ++i) {
    const float*& row = next[placement.host_of(first + i, 0)];
    std::copy_n(row, variable.width, out.data() + i * variable.width);
    row += variable.width;
  }
}

}  // namespace embertable::engine
