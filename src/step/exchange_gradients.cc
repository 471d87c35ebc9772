#include "step/exchange_gradients.h"

#include <algorithm>
#include <numeric>
#include <string_view>
#include <variant>

#include "step/core_sums.h"
#include "step/plan_own_updates.h"

namespace embertable {
namespace {

/// Tells whether a core's sums are those of all rows that it may name, which are `numbers`: the
/// rows' numbers are not sent then.
bool names_all(bool summed, std::int64_t named, std::int64_t numbers) {
  return summed && named == numbers;
}

/// Limit of the entries that a core may send of a replicated table, of which nothing is known
/// before: an update has fewer.
constexpr std::int64_t kMostSent = std::int64_t{1} << 32;

/// Reads what one core of a host sent for a table. `entries`: those that are still expected of a
/// table that does not accumulate; it counts down.
SentGradients read_gradients(MessageReader& reader, const TableRun& table, std::size_t host,
                             std::int64_t& entries, Arena& memory) {
  const std::span<const std::uint64_t> owed = table.route.owed[host];
  const std::int64_t numbers = table.is_replicated() ? table.rows.rows : std::ssize(owed);
  const std::int64_t named = reader.number(table.accumulates ? numbers : entries);
  if (!table.accumulates) entries -= named;
  const bool all = names_all(table.accumulates, named, numbers);
  SentGradients sent = {.row = owed};
  if (!all) {
    const std::span<std::uint64_t> row = reader.indices(named, numbers, memory);
    if (!table.is_replicated())
      for (std::uint64_t& one : row) one = owed[one];
    sent.row = row;
  } else if (table.is_replicated()) {
    const std::span<std::uint64_t> row = memory.take<std::uint64_t>(named);
    std::iota(row.begin(), row.end(), 0);
    sent.row = row;
  }
  sent.gradient = reader.array<float>(named * table.rows.dim).data();
  return sent;
}

}  // namespace

/// What one core of this host adds to rows of one table that other hosts hold.
struct GradientExchange::Share {
  const TableRun* table = nullptr;
  std::int32_t core = 0;
  CoreMemory memory;
  CoreEntries entries;
  std::variant<CoreSums, CoreList> gradients;

  CorePart part(std::size_t host, std::int32_t me) const {
    return std::visit([&](const auto& of_kind) { return part_for(host, me, entries, of_kind); },
                      gradients);
  }
};

std::int64_t GradientExchange::scratch_bytes() const noexcept {
  std::int64_t bytes = scratch_.bytes();
  for (const RowPlaces& places : place_of_) bytes += places.bytes();
  return bytes;
}

void GradientExchange::run(HostStep& step, Messages& messages, Workers& workers) {
  messages.memory().reset();
  const std::span<const Share> shares = add_up(step, messages, workers);
  const std::span<MessageReader> received = send(shares, messages, workers);

  const std::int32_t cores = messages.hosts() * step.cores_per_host;
  const auto sent = step.memory.take<SentGradients>(std::ssize(step.tables) * cores);
  auto next = sent.begin();
  for (const TableRun& table : step.tables) {
    std::int64_t entries = table.is_replicated() ? kMostSent : table.route.entries_elsewhere;
    for (std::int32_t core = 0; core < cores; ++core) {
      const std::size_t host = core / step.cores_per_host;
      *next++ = read_gradients(received[host], table, host, entries, step.memory);
    }
  }
  for (const MessageReader& message : received) message.end();
  plan_own_updates(step, sent, messages.host(), workers);
}

/// Adds up what each core of this host sends of each table.
std::span<const GradientExchange::Share> GradientExchange::add_up(const HostStep& step,
                                                                  Messages& messages,
                                                                  Workers& workers) {
  const std::int32_t first = messages.host() * step.cores_per_host;
  const auto shares = messages.memory().take<Share>(std::ssize(step.tables) * step.cores_per_host);
  auto next = shares.begin();
  std::int64_t floats = 0, replicated_rows = 0;
  for (const TableRun& table : step.tables) {
    for (std::int32_t core = first; core < first + step.cores_per_host; ++core) {
      Share& share = *next++ = {.table = &table, .core = core};
      share.memory = CoreMemory::take(table, core, messages.hosts(), messages.memory());
      floats += share.memory.entries() * table.rows.dim;
    }
    if (table.is_replicated()) replicated_rows = std::max(replicated_rows, table.rows.rows);
  }
  scratch_.reserve(std::ssize(shares), workers.count(), [&](std::int64_t i) {
    const Share& share = shares[i];
    return share.table->accumulates
               ? ScratchPool::Need{.entries = share.memory.entries(), .dim = share.table->rows.dim}
               : ScratchPool::Need();
  });
  place_of_.resize(workers.count());
  for (RowPlaces& places : place_of_) places.reserve(replicated_rows);
  workers.run(std::ssize(shares), floats, [&](const WorkItem& work) {
    Share& share = shares[work.index];
    share.entries = list_entries(*share.table, share.core, share.memory, place_of_[work.worker]);
    if (share.table->accumulates)
      share.gradients = sum_rows(share.entries, share.memory, scratch_.of(work), level_);
    else
      share.gradients = list_gradients(share.entries, share.memory);
  });
  return shares;
}

/// Sends the other hosts what each core adds to their rows. Returns what came from each host.
std::span<MessageReader> GradientExchange::send(std::span<const Share> shares, Messages& messages,
                                                Workers& workers) {
  Arena& memory = messages.memory();
  struct Part {
    CorePart from;
    std::span<float> to;
  };
  const auto parts = memory.take<Part>(std::ssize(shares) * messages.hosts());
  const auto bytes = memory.take_zeros<std::int64_t>(messages.hosts());
  auto part = parts.begin();
  std::int64_t floats = 0;
  for (std::size_t host = 0; host < bytes.size(); ++host) {
    for (const Share& share : shares) {
      const CorePart from = share.part(host, messages.host());
      const std::int64_t size = from.named() * share.table->rows.dim;
      *part++ = {from, {}};
      floats += size;
      bytes[host] += message_bytes<std::int64_t>(1) + message_bytes<float>(size);
      if (!names_all(share.table->accumulates, from.named(), from.numbers))
        bytes[host] += index_bytes(from.named(), from.numbers);
    }
  }
  part = parts.begin();
  const auto send = messages.write(bytes, memory, [&](std::size_t, MessageWriter& writer) {
    for (const Share& share : shares) {
      auto& [from, to] = *part++;
      writer.number(from.named());
      if (!names_all(share.table->accumulates, from.named(), from.numbers)) {
        writer.indices(from.named(), from.numbers, [&, &from = from](auto give) {
          for (std::int64_t i = 0; i < from.named(); ++i) give(from.number(i));
        });
      }
      to = writer.array<float>(from.named() * share.table->rows.dim);
    }
  });
  workers.run(std::ssize(parts), floats,
              [&](const WorkItem& work) { parts[work.index].from.copy_to(parts[work.index].to); });
  constexpr std::string_view kWhat = "sums of gradients";
  messages.start(Channel::kStep, kWhat, send);
  return messages.finish(Channel::kStep, kWhat);
}

}  // namespace embertable
