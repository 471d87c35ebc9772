#include "jobs/step_input.h"

#include <algorithm>

namespace embertable::jobs {
namespace {

constexpr std::size_t kPrefetchSamples = 32;

template <class T>
std::span<const T> part_of(const std::vector<T>& values, std::int64_t begin, std::int64_t end) {
  return std::span(values).subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin));
}

}  // namespace

StepInput::StepInput(const DataSet& data, const Structure& features, std::vector<const IdColumn*> columns,
                     std::int64_t batch, std::int32_t replicas)
    : data_(data), per_replica_(batch / replicas) {
  std::vector<const IdColumn*> different;
  for (const IdColumn* column : columns) {
    const auto found = std::find(different.begin(), different.end(), column);
    column_of_.push_back(static_cast<std::size_t>(found - different.begin()));
    if (found == different.end()) different.push_back(column);
  }
  const auto samples = static_cast<std::size_t>(batch);
  for (const IdColumn* source : different) {
    Column& column = columns_.emplace_back(Column{.source = source});
    if (source->cell >= 0) {
      column.ids.resize(samples);
      targets_.push_back({source->cell, column.ids.data()});
    } else {
      column.ids.reserve(samples * static_cast<std::size_t>(source->lists.longest));
      column.splits.resize(samples + static_cast<std::size_t>(replicas));
      column.begin.resize(static_cast<std::size_t>(replicas) + 1);
    }
  }
  for (std::int32_t r = 0; r < replicas; ++r) {
    batches_.push_back({.features = Nested<FeatureIds>(features, std::vector<FeatureIds>(columns.size()))});
  }
}

void StepInput::fill(std::span<const std::int32_t> samples, std::span<float> labels) {
  fill_cells(samples, labels);
  for (Column& column : columns_) {
    if (column.source->cell < 0) fill_lists(samples, column);
  }
  const auto size = static_cast<std::int64_t>(samples.size());
  for (std::size_t r = 0; r < batches_.size(); ++r) {
    const std::int64_t first = std::min(size, static_cast<std::int64_t>(r) * per_replica_);
    const std::int64_t last = std::min(size, first + per_replica_);
    for (std::size_t feature = 0; feature < column_of_.size(); ++feature) {
      const Column& column = columns_[column_of_[feature]];
      FeatureIds& ids = batches_[r].features[static_cast<std::int64_t>(feature)];
      if (column.source->cell >= 0) {
        ids = DenseIds{.values = part_of(column.ids, first, last)};
      } else {
        const std::int64_t splits = static_cast<std::int64_t>(r) * (per_replica_ + 1);
        ids = RaggedIds{.row_splits = part_of(column.splits, splits, splits + last - first + 1),
                        .values = part_of(column.ids, column.begin[r], column.begin[r + 1])};
      }
    }
  }
}

void StepInput::fill_cells(std::span<const std::int32_t> samples, std::span<float> labels) {
  const std::int32_t* cells = data_.cells.data();
  const std::int64_t stride = data_.stride;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    if (i + kPrefetchSamples < samples.size()) {
      __builtin_prefetch(cells + samples[i + kPrefetchSamples] * stride);
    }
    const std::int32_t* sample = cells + samples[i] * stride;
    for (const Target& target : targets_) target.ids[i] = sample[target.cell];
    labels[i] = std::bit_cast<float>(sample[stride - 1]);
  }
}

void StepInput::fill_lists(std::span<const std::int32_t> samples, Column& column) const {
  const IdLists& lists = column.source->lists;
  column.ids.clear();
  std::size_t sample = 0;
  std::int64_t* split = column.splits.data();
  for (std::size_t r = 0; r < batches_.size(); ++r) {
    const auto begin = static_cast<std::int64_t>(column.ids.size());
    column.begin[r] = begin;
    std::int64_t* next = split;
    *next++ = 0;
    const std::size_t last = std::min(samples.size(), (r + 1) * static_cast<std::size_t>(per_replica_));
    for (; sample < last; ++sample) {
      const std::int32_t owner = column.source->owner;
      const auto list = static_cast<std::size_t>(owner < 0 ? samples[sample] : data_.id(samples[sample], owner));
      column.ids.insert(column.ids.end(), lists.ids.begin() + lists.splits[list],
                        lists.ids.begin() + lists.splits[list + 1]);
      *next++ = static_cast<std::int64_t>(column.ids.size()) - begin;
    }
    split += per_replica_ + 1;
  }
  column.begin.back() = static_cast<std::int64_t>(column.ids.size());
}

}  // namespace embertable::jobs
