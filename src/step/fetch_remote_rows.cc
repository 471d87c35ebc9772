#include "step/fetch_remote_rows.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "kernels/gather/gather.h"
#include "step/bucket_policy.h"

namespace embertable {
namespace {

/// Names the questions in errors.
constexpr std::string_view kQuestions = "row numbers";

/// Limit of the entries that a host may tell of: more would not fit into its memory, and those of
/// all hosts together cannot overflow.
constexpr std::int64_t kMostTold = std::int64_t{1} << 44;

std::int64_t rows_of(const TableRun& table, std::size_t host) {
  return table.placement->shard_rows(static_cast<std::int32_t>(host));
}

/// Returns the bytes of a row as it is stored.
std::int64_t row_bytes(const TableRun& table) {
  return table.rows.dim * table.rows.element_bytes();
}

/// A run of rows of one table that are copied into a message.
struct CopyItem {
  const TableRun* table = nullptr;
  std::span<const std::uint64_t> row;
  std::byte* to = nullptr;  ///< [row.size(), dim], as rows are stored

  /// Returns the rows as floats, since two halves are copied as one float. Requires: has_floats().
  GatheredRows rows() const {
    const RowBlock& rows = table->rows;
    const std::int64_t halves = rows.is_half() ? 2 : 1;
    return {.table = rows.memory(), .stride = rows.stride / halves, .dim = rows.dim / halves};
  }
  bool has_floats() const {
    const RowBlock& rows = table->rows;
    return !rows.is_half() || (rows.dim % 2 == 0 && rows.stride % 2 == 0);
  }

  void copy_by_bytes() const {
    const std::int64_t bytes = row_bytes(*table);
    for (std::size_t i = 0; i < row.size(); ++i)
      std::memcpy(to + static_cast<std::int64_t>(i) * bytes,
                  table->rows.half + static_cast<std::int64_t>(row[i]) * table->rows.stride, bytes);
  }

  /// `next` (or null) is what this worker copies next.
  void copy(const CopyItem* next, SimdLevel level) const {
    if (!has_floats()) return copy_by_bytes();
    Gather<std::uint64_t> args = {.rows = rows(),
                                  .row = row.data(),
                                  .out = reinterpret_cast<float*>(to),
                                  .last = std::ssize(row)};
    if (next != nullptr && next->has_floats())
      args.next = {.rows = next->rows(),
                   .row = next->row.data(),
                   .wide = true,
                   .count = std::ssize(next->row)};
    gather(args, level);
  }
};

/// Cuts the copying of owed rows into items. Its memory is that of the messages.
class CopyItems {
 public:
  CopyItems(const HostStep& step, Workers& workers, Arena& memory) : workers_(workers) {
    for_each_owed(
        step, [&](const TableRun& table, std::int64_t rows) { floats_ += rows * table.rows.dim; });
    most_floats_ = lookup_item_floats(floats_, workers.count());
    std::int64_t items = 0;
    for_each_owed(step, [&](const TableRun& table, std::int64_t rows) {
      items += (rows + rows_of_item(table) - 1) / rows_of_item(table);
    });
    items_ = memory.take<CopyItem>(items);
  }

  /// Adds the rows of one table that a host is owed.
  void add(const TableRun& table, std::span<const std::uint64_t> row, std::byte* to) {
    const auto most = static_cast<std::size_t>(rows_of_item(table));
    for (; !row.empty(); row = row.subspan(std::min(most, row.size()))) {
      items_[added_++] = {&table, row.first(std::min(most, row.size())), to};
      to += static_cast<std::int64_t>(most) * row_bytes(table);
    }
  }

  void copy(SimdLevel level) {
    workers_.run(std::ssize(items_), floats_, [&](const WorkItem& work) {
      items_[work.index].copy(work.next < 0 ? nullptr : &items_[work.next], level);
    });
  }

 private:
  template <class Visit>
  static void for_each_owed(const HostStep& step, Visit visit) {
    for (const TableRun& table : step.tables)
      for (const std::span<const std::uint64_t> owed : table.route.owed)
        visit(table, std::ssize(owed));
  }
  std::int64_t rows_of_item(const TableRun& table) const {
    return std::max(most_floats_ / table.rows.dim, kLeastLookupRows);
  }

  Workers& workers_;
  std::int64_t floats_ = 0, most_floats_ = 0;
  std::span<CopyItem> items_;
  std::size_t added_ = 0;
};

/// Makes the received rows of a table one buffer: that in which the only host that sent any has
/// sent them, or a copy. `sent`: [hosts], rows from each host.
std::span<const std::byte> in_one_buffer(const TableRun& table,
                                         std::span<const std::span<const std::byte>> sent,
                                         Arena& memory) {
  const TableRoute& route = table.route;
  const std::int64_t all = route.received_first.back() * row_bytes(table);
  for (const std::span<const std::byte> rows : sent)
    if (std::ssize(rows) == all) return rows;
  const std::span<std::byte> buffer = memory.take<std::byte>(all);
  for (std::size_t host = 0; host < sent.size(); ++host)
    std::ranges::copy(sent[host], buffer.begin() + route.received_first[host] * row_bytes(table));
  return buffer;
}

}  // namespace

void ask_for_rows(HostStep& step, Messages& messages, Channel channel) {
  const auto bytes = step.memory.take_zeros<std::int64_t>(messages.hosts());
  for (std::size_t host = 0; host < bytes.size(); ++host)
    for (const TableRun& table : step.tables)
      if (!table.is_replicated())
        bytes[host] += 2 * message_bytes<std::int64_t>(1) +
                       index_bytes(std::ssize(table.route.asked[host]), rows_of(table, host));
  const auto write = [&](std::size_t host, MessageWriter& writer) {
    for (const TableRun& table : step.tables) {
      if (table.is_replicated()) continue;
      const std::span<const std::uint64_t> asked = table.route.asked[host];
      writer.number(table.entries());
      writer.number(std::ssize(asked));
      writer.indices(std::ssize(asked), rows_of(table, host),
                     [&](auto give) { std::ranges::for_each(asked, give); });
    }
  };
  messages.start(channel, kQuestions, messages.write(bytes, step.memory, write));
}

void hear_questions(HostStep& step, Messages& messages, Channel asked_on) {
  messages.memory().reset();
  const std::span<MessageReader> questions = messages.finish(asked_on, kQuestions);
  for (TableRun& table : step.tables) {
    table.route.owed.assign(questions.size(), {});
    // This host's message has its own too.
    table.route.entries_elsewhere = table.is_replicated() ? 0 : -table.entries();
  }
  for (std::size_t host = 0; host < questions.size(); ++host) {
    MessageReader& question = questions[host];
    for (TableRun& table : step.tables) {
      if (table.is_replicated()) continue;
      table.route.entries_elsewhere += question.number(kMostTold);
      const std::int64_t rows = question.number(table.rows.rows);
      table.route.owed[host] = question.indices(rows, table.rows.rows, step.memory);
    }
    question.end();
  }
}

bool swap_rows(HostStep& step, Messages& messages, Workers& workers, SimdLevel level,
               bool has_next) {
  Arena& memory = messages.memory();
  memory.reset();
  const auto bytes = memory.take_zeros<std::int64_t>(messages.hosts());
  for (std::size_t host = 0; host < bytes.size(); ++host) {
    bytes[host] = message_bytes<std::int64_t>(1);
    for (const TableRun& table : step.tables)
      bytes[host] +=
          message_bytes<std::byte>(std::ssize(table.route.owed[host]) * row_bytes(table));
  }
  CopyItems items(step, workers, memory);
  // Rows come first, so that those of many tables start on the borders of cache lines.
  const auto send = messages.write(bytes, memory, [&](std::size_t host, MessageWriter& writer) {
    for (const TableRun& table : step.tables) {
      const std::span<const std::uint64_t> owed = table.route.owed[host];
      items.add(table, owed, writer.array<std::byte>(std::ssize(owed) * row_bytes(table)).data());
    }
    writer.number(has_next ? 1 : 0);
  });
  items.copy(level);
  constexpr std::string_view kWhat = "rows";
  messages.start(Channel::kStep, kWhat, send);
  const std::span<MessageReader> received = messages.finish(Channel::kStep, kWhat);

  const auto sent = memory.take<std::span<const std::byte>>(messages.hosts());
  for (TableRun& table : step.tables) {
    for (std::size_t host = 0; host < received.size(); ++host)
      sent[host] =
          received[host].array<std::byte>(std::ssize(table.route.asked[host]) * row_bytes(table));
    table.route.received = in_one_buffer(table, sent, step.memory);
  }
  bool all_have_next = true;
  for (MessageReader& rows : received) {
    all_have_next &= rows.number(1) != 0;
    rows.end();
  }
  return all_have_next;
}

void put_rows_back(HostStep& step, std::int32_t host) noexcept {
  for (TableRun& table : step.tables) {
    if (!table.route.translated) continue;
    for (const FeatureRun& feature : table.features) {
      LookupPlan& plan = *feature.plan;
      for (std::int64_t entry = 0; entry < plan.row.size; ++entry) {
        const std::int64_t row = global_row(*table.placement, table.route, host, plan, entry);
        if (plan.row.wide)
          plan.row.as<std::uint64_t>()[entry] = static_cast<std::uint64_t>(row);
        else
          plan.row.as<std::uint32_t>()[entry] = static_cast<std::uint32_t>(row);
      }
    }
    table.route.translated = false;
  }
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
