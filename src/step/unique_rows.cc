#include "step/unique_rows.h"

namespace embertable {
namespace {

/// Calls visit(row) for every entry of a host that names a row of its own, and for every row that
/// another host asks it for.
template <class Visit>
void for_each_own_row(const TableRun& table, Visit visit) {
  for (const FeatureRun& feature : table.features) {
    feature.plan->visit_rows([&]<class Index>(const Index* row) {
      for (std::int64_t j = 0; j < feature.plan->row.size; ++j)
        if ((row[j] & kReceivedBit<Index>) == 0) visit(std::uint64_t{row[j]});
    });
  }
  for (const std::span<const std::uint64_t> owed : table.route.owed)
    for (const std::uint64_t row : owed) visit(row);
}

/// Calls visit(row) for the rows that host `mine` counts, as often as they are named: its own ones,
/// and for host 0 those of replicated tables that any host of this process names.
template <class Visit>
void for_each_counted_row(std::span<const HostStep> hosts, std::size_t mine, std::int64_t table,
                          Visit visit) {
  if (!hosts[mine].tables[table].is_replicated())
    return for_each_own_row(hosts[mine].tables[table], visit);
  if (mine != 0) return;
  for (const HostStep& host : hosts) for_each_own_row(host.tables[table], visit);
}

}  // namespace

std::int64_t UniqueRows::bytes() const noexcept {
  std::int64_t words = 0;
  for (const std::vector<std::uint64_t>& seen : seen_) words += std::ssize(seen);
  return words * static_cast<std::int64_t>(sizeof(std::uint64_t));
}

void UniqueRows::count(std::span<const HostStep> hosts, std::size_t mine, Workers& workers,
                       FunctionRef<void(std::int64_t, std::int64_t)> tell) {
  const HostStep& step = hosts[mine];
  seen_.resize(step.tables.size());
  std::int64_t entries = 0;
  for (std::size_t t = 0; t < seen_.size(); ++t) {
    seen_[t].resize((step.tables[t].rows.rows + 63) / 64);
    entries += step.tables[t].entries();
  }
  // Each row is marked at its first entry; a second walk clears the marks.
  workers.run(std::ssize(seen_), entries, [&](const WorkItem& item) {
    std::uint64_t* const seen = seen_[item.index].data();
    std::int64_t unique = 0;
    for_each_counted_row(hosts, mine, item.index, [&](std::uint64_t row) {
      unique += static_cast<std::int64_t>((~seen[row / 64] >> (row % 64)) & 1);
      seen[row / 64] |= std::uint64_t{1} << (row % 64);
    });
    for_each_counted_row(hosts, mine, item.index, [&](std::uint64_t row) { seen[row / 64] = 0; });
    tell(item.index, unique);
  });
}

}  // namespace embertable
