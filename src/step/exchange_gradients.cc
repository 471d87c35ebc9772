#include "step/exchange_gradients.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <string_view>
#include <utility>

#include "step/backward.h"
#include "step/plan_own_updates.h"

namespace embertable {
namespace {

/// The rule for rows that other hosts own: stores the sum, which is then sent to the owner.
void store_sums(const RowTile& tile, const StepScalars&) noexcept {
  for (std::int32_t i = 0; i < tile.rows; ++i)
    std::memcpy(tile.row[i], tile.gradient[i], static_cast<std::size_t>(tile.dim) * sizeof(float));
}

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

void RowPlaces::reserve(std::int64_t table_rows) {
  bits_.reserve((table_rows + 63) / 64);
  before_.reserve((table_rows + 63) / 64);
}

void RowPlaces::clear(std::int64_t table_rows) {
  bits_.assign((table_rows + 63) / 64, 0);
  before_.resize(bits_.size());
}

std::int64_t RowPlaces::number() {
  std::int64_t rows = 0;
  for (std::size_t word = 0; word < bits_.size(); ++word) {
    before_[word] = static_cast<std::uint32_t>(rows);
    rows += std::popcount(bits_[word]);
  }
  return rows;
}

void RowPlaces::list(std::span<std::uint64_t> rows) const {
  auto row = rows.begin();
  for (std::size_t word = 0; word < bits_.size(); ++word)
    for (std::uint64_t left = bits_[word]; left != 0; left &= left - 1)
      *row++ = 64 * word + static_cast<std::uint64_t>(std::countr_zero(left));
}

std::int64_t GradientExchange::scratch_bytes() const noexcept {
  std::int64_t bytes = scratch_.bytes();
  for (const RowPlaces& places : place_of_) bytes += places.bytes();
  return bytes;
}

void GradientExchange::run(HostStep& step, Messages& messages, Workers& workers) {
  messages.memory().reset();
  const std::span<CoreSums> sums = list_sums(step, messages);
  make_sums(sums, workers);
  const std::span<MessageReader> received = send(sums, messages, workers);

  const std::int32_t cores = messages.hosts() * step.cores_per_host;
  const auto sent = step.memory.take<SentGradients>(std::ssize(step.tables) * cores);
  auto next = sent.begin();
  for (const TableRun& table : step.tables) {
    std::int64_t entries = table.is_replicated() ? kMostSent : table.route.entries_elsewhere;
    for (std::int32_t r = 0; r < cores; ++r) {
      const std::size_t host = r / step.cores_per_host;
      *next++ = read_gradients(received[host], table, host, entries, step.memory);
    }
  }
  for (const MessageReader& message : received) message.end();
  plan_own_updates(step, sent, messages.host(), workers);
}

/// Lists what each core of this host sends of each table, and makes room for it.
std::span<GradientExchange::CoreSums> GradientExchange::list_sums(const HostStep& step,
                                                                  Messages& messages) {
  Arena& memory = messages.memory();
  const std::int32_t first = messages.host() * step.cores_per_host;
  const auto sums = memory.take<CoreSums>(std::ssize(step.tables) * step.cores_per_host);
  auto sum = sums.begin();
  for (const TableRun& table : step.tables) {
    for (std::int32_t r = first; r < first + step.cores_per_host; ++r) {
      *sum = {.table = &table, .me = messages.host(), .core = r};
      sum->places = table.route.received_first.back();
      std::int64_t entries = 0, pieces = 0;
      bool gain = false;
      for (const FeatureRun& feature : table.features) {
        if (feature.core != r) continue;
        entries += feature.plan->row.size;
        pieces += pieces_for(feature.plan->outputs);
        gain |= feature.plan->has_gain();
      }
      if (table.is_replicated()) {
        sum->places = std::min(entries, table.rows.rows);
        sum->row = memory.take<std::uint64_t>(sum->places);
      }
      sum->piece = memory.take<GradientPiece>(pieces);
      sum->entry = memory.take<UpdateEntry<std::uint32_t>>(entries + 1);
      if (gain) sum->gain = memory.take<float>(entries + 1).data();
      sum->index = memory.take<std::uint32_t>(table.accumulates ? sum->places + 1 : entries);
      if (table.accumulates)
        sum->named = memory.take<std::uint8_t>(sum->places);
      else
        sum->run = memory.take_zeros<std::int64_t>(messages.hosts() + 1);
      sum->gradient =
          memory.take<float>((table.accumulates ? sum->places : entries) * table.rows.dim);
      ++sum;
    }
  }
  return sums;
}

void GradientExchange::make_sums(std::span<CoreSums> sums, Workers& workers) {
  std::int64_t floats = 0, replicated_rows = 0;
  for (const CoreSums& sum : sums) {
    floats += (std::ssize(sum.entry) - 1) * sum.table->rows.dim;
    if (sum.table->is_replicated())
      replicated_rows = std::max(replicated_rows, sum.table->rows.rows);
  }
  scratch_.reserve(std::ssize(sums), workers.count(), [&](std::int64_t i) {
    const CoreSums& sum = sums[i];
    return sum.table->accumulates
               ? ScratchPool::Need{.entries = std::ssize(sum.entry) - 1, .dim = sum.table->rows.dim}
               : ScratchPool::Need();
  });
  place_of_.resize(workers.count());
  for (RowPlaces& places : place_of_) places.reserve(replicated_rows);
  workers.run(std::ssize(sums), floats, [&](const WorkItem& work) {
    CoreSums& sum = sums[work.index];
    if (sum.table->is_replicated()) sum.number_rows(place_of_[work.worker]);
    sum.list_entries(place_of_[work.worker]);
    sum.table->accumulates ? sum.sum_rows(scratch_.of(work), level_) : sum.scale_entries();
  });
}

/// Numbers the rows of a replicated table that the core names.
void GradientExchange::CoreSums::number_rows(RowPlaces& place_of) {
  place_of.clear(table->rows.rows);
  for (const FeatureRun& feature : table->features) {
    if (feature.core != core) continue;
    feature.plan->visit_rows([&](const auto* rows) {
      for (std::int64_t j = 0; j < feature.plan->row.size; ++j) place_of.add(rows[j]);
    });
  }
  places = place_of.number();
  row = row.first(places);
  place_of.list(row);
}

/// Lists the core's entries for rows that other hosts hold, and where their gradients are.
void GradientExchange::CoreSums::list_entries(const RowPlaces& place_of) {
  std::int64_t count = 0, pieces = 0;
  const bool replicated = table->is_replicated();
  for (const FeatureRun& feature : table->features) {
    if (feature.core != core) continue;
    const LookupPlan& plan = *feature.plan;
    const auto base = static_cast<std::uint32_t>(pieces * kPieceRows);
    plan.visit_rows([&]<class Index>(const Index* rows) {
      plan.for_each_entry([&](std::int64_t output, std::int64_t k) {
        const auto place = replicated ? place_of[rows[k]]
                                      : static_cast<std::uint32_t>(rows[k] & ~kReceivedBit<Index>);
        entry[count] = {place, base + static_cast<std::uint32_t>(output)};
        if (gain != nullptr) gain[count] = plan.gain(output)(k);
        count += static_cast<std::int64_t>(replicated || (rows[k] & kReceivedBit<Index>) != 0);
      });
    });
    append_pieces(feature.gradient, plan.outputs, table->rows.dim, core, piece.data() + pieces);
    pieces += pieces_for(plan.outputs);
  }
  entry = entry.first(count);
}

/// Sums the listed entries' gradients by place, with the arithmetic of any update.
void GradientExchange::CoreSums::sum_rows(GroupScratch& scratch, SimdLevel level) {
  std::ranges::fill(named, std::uint8_t{0});
  for (const UpdateEntry<std::uint32_t>& each : entry) named[each.row] = 1;
  std::int64_t count = 0;
  for (std::int64_t place = 0; place < places; ++place) {
    index[count] = static_cast<std::uint32_t>(place);
    count += named[place];
  }
  index = index.first(count);
  if (entry.empty()) return;

  std::int64_t bucket[2] = {0, std::ssize(entry)};
  TableUpdate update;
  update.rows = {
      .row = gradient.data(), .stride = table->rows.dim, .dim = table->rows.dim, .rows = places};
  update.update_rows = store_sums;
  update.plan = {.entry = entry.data(), .gain = gain, .bucket = bucket, .piece = piece};
  update.gradients = {.piece = piece.data()};
  update_entries(update, 0, std::ssize(entry), scratch, level);
}

/// Writes the listed entries' gradients, one by one, for a table without accumulation: those for
/// each host side by side. All of a replicated table are for every other host, and count as host
/// 0's.
void GradientExchange::CoreSums::scale_entries() {
  const std::int32_t dim = table->rows.dim;
  const std::span<const std::int64_t> hosts = table->route.received_first;
  const auto host_of = [&](std::uint32_t place) {
    return table->is_replicated() ? 0 : std::ranges::upper_bound(hosts, place) - hosts.begin() - 1;
  };
  for (const UpdateEntry<std::uint32_t>& each : entry) ++run[host_of(each.row) + 1];
  std::partial_sum(run.begin(), run.end(), run.begin());
  for (std::size_t k = 0; k < entry.size(); ++k) {
    const GradientPiece& from_piece = piece[entry[k].out / kPieceRows];
    const float* from = from_piece.base + entry[k].out % kPieceRows * from_piece.stride;
    const std::int64_t at = run[host_of(entry[k].row)]++;
    index[at] = entry[k].row;
    const float scale = gain == nullptr ? 1.0f : gain[k];
    float* const to = gradient.data() + at * dim;
    for (std::int32_t c = 0; c < dim; ++c) to[c] = scale * from[c];
  }
  std::copy_backward(run.begin(), run.end() - 1, run.end());  // each was left where the next begins
  run.front() = 0;
  index = index.first(entry.size());
}

template <class Visit>
void GradientExchange::CoreSums::for_each_of(std::size_t host, Visit visit) const {
  const std::int64_t first = places_of(host).first, dim = table->rows.dim;
  const auto [begin, end] = run_of(host);
  for (std::int64_t i = begin; i < end; ++i) {
    const std::int64_t place = index[i], at = table->accumulates ? place : i;
    visit(table->is_replicated() ? static_cast<std::int64_t>(row[place]) : place - first,
          gradient.data() + at * dim);
  }
}

/// Returns the places first <= place < second of the rows that a host is sent.
std::pair<std::int64_t, std::int64_t> GradientExchange::CoreSums::places_of(
    std::size_t host) const {
  if (table->is_replicated()) return {0, std::cmp_equal(host, me) ? 0 : places};
  return {table->route.received_first[host], table->route.received_first[host + 1]};
}

/// Returns the members first <= i < second of `index` that a host is sent.
std::pair<std::int64_t, std::int64_t> GradientExchange::CoreSums::run_of(std::size_t host) const {
  const auto [first, last] = places_of(host);
  if (first == last) return {0, 0};
  if (table->is_replicated()) return {0, std::ssize(index)};
  if (!table->accumulates) return {run[host], run[host + 1]};
  return {std::ranges::lower_bound(index, first) - index.begin(),
          std::ranges::lower_bound(index, last) - index.begin()};
}

std::int64_t GradientExchange::CoreSums::named_of(std::size_t host) const {
  const auto [begin, end] = run_of(host);
  return end - begin;
}

std::int64_t GradientExchange::CoreSums::numbers_of(std::size_t host) const {
  return table->is_replicated() ? table->rows.rows : std::ssize(table->route.asked[host]);
}

/// Copies what a host is sent.
void GradientExchange::CoreSums::copy_to(std::size_t host, std::span<float> to) const {
  const auto [first, last] = places_of(host);
  const std::int64_t dim = table->rows.dim;
  const bool all_named = std::ssize(to) == (last - first) * dim;
  if (!table->accumulates || all_named) {  // side by side
    const std::int64_t begin = table->accumulates ? first : run_of(host).first;
    std::copy_n(gradient.data() + begin * dim, to.size(), to.data());
    return;
  }
  float* at = to.data();
  for_each_of(host, [&](std::int64_t, const float* from) { at = std::copy_n(from, dim, at); });
}

/// Sends the other hosts what each core adds to their rows. Returns what came from each host.
std::span<MessageReader> GradientExchange::send(std::span<const CoreSums> sums, Messages& messages,
                                                Workers& workers) {
  Arena& memory = messages.memory();
  struct Part {
    const CoreSums* sum;
    std::size_t host;
    std::int64_t named;
    std::span<float> to;
  };
  const auto parts = memory.take<Part>(std::ssize(sums) * messages.hosts());
  const auto bytes = memory.take_zeros<std::int64_t>(messages.hosts());
  auto part = parts.begin();
  std::int64_t floats = 0;
  for (std::size_t host = 0; host < bytes.size(); ++host) {
    for (const CoreSums& sum : sums) {
      const std::int64_t named = sum.named_of(host), numbers = sum.numbers_of(host);
      const std::int64_t size = named * sum.table->rows.dim;
      *part++ = {&sum, host, named, {}};
      floats += size;
      bytes[host] += message_bytes<std::int64_t>(1) + message_bytes<float>(size);
      if (!names_all(sum.table->accumulates, named, numbers))
        bytes[host] += index_bytes(named, numbers);
    }
  }
  part = parts.begin();
  const auto send = messages.write(bytes, memory, [&](std::size_t host, MessageWriter& writer) {
    for (const CoreSums& sum : sums) {
      const std::int64_t named = part->named, numbers = sum.numbers_of(host);
      writer.number(named);
      if (!names_all(sum.table->accumulates, named, numbers)) {
        writer.indices(named, numbers, [&](auto give) {
          sum.for_each_of(host, [&](std::int64_t number, const float*) { give(number); });
        });
      }
      part->to = writer.array<float>(named * sum.table->rows.dim);
      ++part;
    }
  });
  workers.run(std::ssize(parts), floats, [&](const WorkItem& work) {
    const Part& mine = parts[work.index];
    mine.sum->copy_to(mine.host, mine.to);
  });
  constexpr std::string_view kWhat = "sums of gradients";
  messages.start(Channel::kStep, kWhat, send);
  return messages.finish(Channel::kStep, kWhat);
}

}  // namespace embertable
