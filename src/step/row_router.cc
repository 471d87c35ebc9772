#include "step/row_router.h"

#include <algorithm>
#include <string>

#include "base/assert.h"
#include "embertable/errors.h"
#include "kernels/group.h"

namespace embertable {
namespace {

/// The distinct rows of one table, in the order of their first entries.
template <class Index>
struct DistinctRows {
  std::int64_t entries = 0;
  std::int64_t rows = 0;
  const std::uint32_t* first_of = nullptr;  ///< [entries], the first entry with the same row
  const std::uint32_t* first = nullptr;     ///< [rows], rising: first_of of their entries
  const Index* row = nullptr;               ///< [entries], of the whole table
};

template <class Index>
DistinctRows<Index> distinct_rows(const TableRun& table, std::int64_t entries,
                                  GroupScratch& scratch, SimdLevel level) {
  EMBERTABLE_ASSERT(entries <= scratch.entries());
  const GroupMemory<Index> memory = scratch.memory<Index>();
  Index* to = scratch.row<Index>();
  for (const FeatureRun& feature : table.features)
    to = std::copy_n(feature.plan->row.as<Index>(), feature.plan->row.size, to);
  DistinctRows<Index> distinct = {.entries = entries,
                                  .first_of = memory.first,
                                  .first = memory.order,
                                  .row = scratch.row<Index>()};
  find_first<Index>({.row = distinct.row, .count = entries, .memory = memory}, level);
  for (std::int64_t i = 0; i < entries; ++i) {  // without a branch that nobody could predict
    memory.order[distinct.rows] = static_cast<std::uint32_t>(i);
    distinct.rows += static_cast<std::int64_t>(memory.first[i] == i);
  }
  return distinct;
}

/// Makes one table's plans name local rows and places. `asked`: [entries + 1], room for the rows
/// that are asked of others; next: [hosts], scratch.
template <class Index>
void route_rows(TableRun& table, std::int32_t me, std::span<std::uint64_t> asked,
                std::span<std::int64_t> next, GroupScratch& scratch, SimdLevel level) {
  const DistinctRows<Index> distinct =
      distinct_rows<Index>(table, std::ssize(asked) - 1, scratch, level);
  const Placement placement = *table.placement;
  TableRoute& route = table.route;
  const GroupMemory<Index> memory = scratch.memory<Index>();
  std::uint32_t* const host_of = memory.start;  // by distinct row, as the next
  Index* const local = memory.multi_row;
  for (std::int64_t k = 0; k < distinct.rows; ++k) {
    const auto place = placement.place_of(distinct.row[distinct.first[k]]);
    host_of[k] = static_cast<std::uint32_t>(place.host);
    local[k] = place.local;
    ++next[place.host];
  }
  next[me] = 0;
  for (std::size_t host = 0; host < next.size(); ++host) {
    const std::int64_t first = route.received_first[host], count = next[host];
    route.asked[host] = asked.subspan(first, count);
    route.received_first[host + 1] = first + count;
    next[host] = first;
  }
  next[me] = std::ssize(asked) - 1;       // where own rows are written, and nobody reads them
  Index* const code = memory.single_row;  // by entry, if it is the first of its row
  for (std::int64_t k = 0; k < distinct.rows; ++k) {
    const std::uint32_t host = host_of[k];
    const bool other = std::cmp_not_equal(host, me);
    const auto place = static_cast<Index>(kReceivedBit<Index> | static_cast<Index>(next[host]));
    asked[next[host]] = local[k];
    next[host] += static_cast<std::int64_t>(other);
    code[distinct.first[k]] = other ? place : local[k];
  }
  const std::uint32_t* first_of = distinct.first_of;
  for (const FeatureRun& feature : table.features) {
    Index* row = feature.plan->row.as<Index>();
    for (std::int64_t i = 0; i < feature.plan->row.size; ++i) row[i] = code[*first_of++];
  }
  route.translated = true;
}

}  // namespace

void RowRouter::run(HostStep& step, std::int32_t me, Workers& workers, std::int64_t most_grouped) {
  struct Room {
    std::int64_t entries;  ///< 0 if the table is replicated
    std::span<std::uint64_t> asked;
    std::span<std::int64_t> next;
  };
  const std::span<Room> room = step.memory.take<Room>(std::ssize(step.tables));
  std::int64_t all = 0;
  for (std::size_t t = 0; t < step.tables.size(); ++t) {
    const TableRun& table = step.tables[t];
    room[t].entries = table.is_replicated() ? 0 : table.entries();
    all += room[t].entries;
    if (room[t].entries > most_grouped)
      throw ValueError("table '" + std::string(table.name) +
                       "': with several hosts, a step may look up at most " +
                       std::to_string(most_grouped) + " ids on each, got " +
                       std::to_string(room[t].entries));
  }
  scratch_.reserve(std::ssize(room), workers.count(), [&](std::int64_t t) {
    return ScratchPool::Need{.entries = room[t].entries, .wide = step.tables[t].wide};
  });
  for (std::size_t t = 0; t < step.tables.size(); ++t) {
    TableRun& table = step.tables[t];
    const std::int64_t hosts = table.placement->hosts();
    room[t].asked = step.memory.take<std::uint64_t>(room[t].entries + 1);
    room[t].next = step.memory.take_zeros<std::int64_t>(hosts);
    table.route.received_first = step.memory.take_zeros<std::int64_t>(hosts + 1);
    table.route.asked.assign(static_cast<std::size_t>(hosts), {});
  }
  workers.run(std::ssize(room), all, [&](const WorkItem& work) {
    TableRun& table = step.tables[work.index];
    if (table.is_replicated()) return;
    const Room& mine = room[work.index];
    GroupScratch& scratch = scratch_.of(work);
    table.wide ? route_rows<std::uint64_t>(table, me, mine.asked, mine.next, scratch, level_)
               : route_rows<std::uint32_t>(table, me, mine.asked, mine.next, scratch, level_);
  });
}

}  // namespace embertable
