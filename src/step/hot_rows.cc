#include "step/hot_rows.h"

#include <algorithm>
#include <iterator>
#include <numeric>

#include "base/entries.h"
#include "kernels/row_tile.h"
#include "kernels/stage_clock.h"
#include "kernels/tile_update.h"

namespace embertable {
namespace {

constexpr std::int64_t kSamples = 128;
constexpr std::int64_t kHotSamples = kSamples / HotBucket::kMostRows;

/// Returns the first entry that is not before the piece; entries rise by out.
template <class Index>
std::int64_t first_of_piece(const EntryList<Index>& entries, std::int64_t piece) {
  std::int64_t low = 0, high = entries.count;
  while (low < high) {
    const std::int64_t middle = low + (high - low) / 2;
    if (entries.out_at(middle) < static_cast<std::uint64_t>(piece * kPieceRows))
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

void add(float* sum, const float* term, std::int64_t columns) {
  for (std::int64_t c = 0; c < columns; ++c) sum[c] = sum[c] + term[c];
}

}  // namespace

template <class Index>
EntryList<Index> HotBucket::all() const {
  const UpdatePlan& plan = table_->plan;
  if (plan.direct != nullptr) return {.row = plan.direct->row.as<Index>(), .count = count_};
  const EntryList<Index> entries = {.entry = static_cast<const UpdateEntry<Index>*>(plan.entry),
                                    .gain = plan.gain,
                                    .count = plan.bucket.back()};
  return entries.part(first_, first_ + count_);
}

template <class Index>
bool HotBucket::find_as() {
  const EntryList<Index> entries = all<Index>();
  if (entries.count < kSamples) return false;
  std::uint64_t sample[kSamples];
  for (std::int64_t i = 0; i < kSamples; ++i)
    sample[i] = entries.row_at(entries.count * i / kSamples);
  std::sort(std::begin(sample), std::end(sample));
  for (std::int64_t first = 0, last = 0; first < kSamples; first = last) {
    while (last < kSamples && sample[last] == sample[first]) ++last;
    if (last - first >= kHotSamples) row_[rows_++] = sample[first];
  }
  return rows_ > 0;
}

bool HotBucket::find(const TableUpdate& table, std::int64_t first, std::int64_t count) {
  table_ = &table;
  first_ = first;
  count_ = count;
  rows_ = 0;
  return table.plan.wide ? find_as<std::uint64_t>() : find_as<std::uint32_t>();
}

void HotBucket::cut(std::int32_t workers) {
  constexpr std::int64_t kRunsOfWorker = 4;
  pieces_ = std::ssize(table_->plan.piece);
  runs_ = std::min(pieces_, workers * kRunsOfWorker);
  const std::int64_t lines = padded(table_->rows.dim) / 16;
  blocks_ = std::clamp<std::int64_t>(workers / (runs_ * rows_), 1, lines);
  most_parts_ = std::max<std::int64_t>(kMostRows * runs_, workers);
  // Makes room for the maximum number of rows, so that the next batch of the same shape finds it.
  found_.assign(static_cast<std::size_t>(kMostRows * pieces_), 0);
  const std::int64_t bytes = kMostRows * pieces_ * padded(table_->rows.dim) * 4;
  if (sums_.bytes() >= bytes) return;
  sums_ = Mapping();
  sums_ = Mapping(bytes);
}

float* HotBucket::sum_of(std::int64_t hot, std::int64_t piece) {
  return reinterpret_cast<float*>(sums_.data()) + at(hot, piece) * padded(table_->rows.dim);
}

template <class Index>
void HotBucket::sum_part_as(std::int64_t part, SimdLevel level) noexcept {
  const std::int64_t block = part % blocks_, run = part / blocks_ % runs_,
                     hot = part / blocks_ / runs_;
  const std::int64_t dim = table_->rows.dim, lines = padded(dim) / 16;
  const std::int64_t column = lines * block / blocks_ * 16,
                     end = std::min(lines * (block + 1) / blocks_ * 16, dim);
  const EntryList<Index> entries = all<Index>();
  const std::int64_t last_piece = pieces_ * (run + 1) / runs_;
  std::int64_t piece = pieces_ * run / runs_;
  for (std::int64_t first = first_of_piece(entries, piece); piece < last_piece; ++piece) {
    const std::int64_t last = first_of_piece(entries, piece + 1);
    const std::int64_t found = sum_hot_row<Index>({.entries = entries.part(first, last),
                                                   .row = static_cast<Index>(row_[hot]),
                                                   .piece = table_->plan.piece[piece],
                                                   .column = column,
                                                   .columns = end - column,
                                                   .sum = sum_of(hot, piece) + column},
                                                  level);
    if (block == 0) found_[at(hot, piece)] = static_cast<std::uint32_t>(found);
    first = last;
  }
}

void HotBucket::sum_part(std::int64_t part, SimdLevel level) noexcept {
  table_->plan.wide ? sum_part_as<std::uint64_t>(part, level)
                    : sum_part_as<std::uint32_t>(part, level);
}

std::int64_t HotBucket::entries() const noexcept {
  return std::accumulate(found_.begin(), found_.end(), std::int64_t{0});
}

/// Adds a row's pieces left to right, then its cores, in the memory of the first of each.
float* HotBucket::total_of(std::int64_t hot) {
  const std::int64_t dim = table_->rows.dim;
  float *total = nullptr, *core = nullptr;
  std::int32_t number = 0;
  for (std::int64_t p = 0; p < pieces_; ++p) {
    if (found_[at(hot, p)] == 0) continue;
    float* const sum = sum_of(hot, p);
    const std::int32_t now = table_->plan.piece[p].core;
    if (core != nullptr && now == number) {
      add(core, sum, dim);
      continue;
    }
    if (core != nullptr && total != nullptr) add(total, core, dim);
    if (total == nullptr) total = core;
    core = sum;
    number = now;
  }
  if (total == nullptr) return core;
  add(total, core, dim);
  return total;
}

void HotBucket::update(float* wide, SimdLevel level) noexcept {
  TileInProgress tile(table_->rows, table_->update_rows, table_->step, wide, level);
  for (std::int32_t hot = 0; hot < rows_; ++hot) {
    tile.add(row_[hot], total_of(hot));
    if (table_->touched != nullptr) touch(*table_, row_[hot]);
  }
  tile.finish();
}

template <class Index>
std::int64_t HotBucket::take_others(Index* row, std::uint32_t* out, float* gain,
                                    SimdLevel level) const {
  Index left_out[kMostRows];
  for (std::int32_t hot = 0; hot < rows_; ++hot) left_out[hot] = static_cast<Index>(row_[hot]);
  return leave_out<Index>({.entries = all<Index>(),
                           .left_out = left_out,
                           .rows = rows_,
                           .row = row,
                           .out = out,
                           .gain = gain},
                          level);
}
template std::int64_t HotBucket::take_others(std::uint32_t*, std::uint32_t*, float*,
                                             SimdLevel) const;
template std::int64_t HotBucket::take_others(std::uint64_t*, std::uint32_t*, float*,
                                             SimdLevel) const;

HotBucket* HotRows::find(const TableUpdate& table, std::int64_t first, std::int64_t count) {
  if (buckets_.size() == buckets_in_use_) buckets_.emplace_back();
  HotBucket& hot = buckets_[buckets_in_use_];
  if (!hot.find(table, first, count)) return nullptr;
  ++buckets_in_use_;
  return &hot;
}

std::int32_t HotRows::sum(Workers& workers, SimdLevel level) {
  parts_.clear();
  std::int64_t floats = 0, most_parts = 0;
  for (std::size_t i = 0; i < buckets_in_use_; ++i) {
    HotBucket& hot = buckets_[i];
    hot.cut(workers.count());
    most_parts += hot.most_parts();
    parts_.reserve(most_parts);
    for (std::int64_t part = 0; part < hot.parts(); ++part) parts_.push_back({&hot, part});
    floats += hot.floats();
  }
  return workers.run(std::ssize(parts_), floats, [&](const WorkItem& work) {
    StageLap lap;
    const Part& part = parts_[work.index];
    part.bucket->sum_part(part.part, level);
    lap.to(StepStage::kSumAndUpdate);
  });
}

std::int64_t HotRows::bytes() const noexcept {
  std::int64_t bytes = 0;
  for (const HotBucket& hot : buckets_) bytes += hot.bytes();
  return bytes;
}

}  // namespace embertable
