#include "jobs/step_input.h"

#include <algorithm>

namespace embertable::jobs {
namespace {

template <class T>
std::span<const T> part_of(const std::vector<T>& values, std::int64_t begin, std::int64_t end) {
  return std::span(values).subspan(static_cast<std::size_t>(begin),
                                   static_cast<std::size_t>(end - begin));
}

}  // namespace

StepInput::StepInput(const Structure& features, std::vector<const IdColumn*> columns,
                     std::int64_t batch, std::int32_t replicas)
    : per_replica_(batch / replicas) {
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
    batches_.push_back(
        {.features = Nested<FeatureIds>(features, std::vector<FeatureIds>(columns.size()))});
  }
}

void StepInput::fill(const SampleRange& samples, std::span<float> labels) {
  fill_cells(samples, labels);
  for (Column& column : columns_) {
    if (column.source->cell < 0) fill_lists(samples, column);
  }
  for (std::size_t r = 0; r < batches_.size(); ++r) {
    const std::int64_t first = std::min(samples.size, static_cast<std::int64_t>(r) * per_replica_);
    const std::int64_t last = std::min(samples.size, first + per_replica_);
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

void StepInput::fill_cells(const SampleRange& samples, std::span<float> labels) {
  const std::int64_t stride = samples.all.stride;
  const std::int32_t* sample = samples.all.row(samples.first);
  for (std::int64_t i = 0; i < samples.size; ++i, sample += stride) {
    for (const Target& target : targets_) target.ids[i] = sample[target.cell];
    labels[static_cast<std::size_t>(i)] = std::bit_cast<float>(sample[stride - 1]);
  }
}

void StepInput::fill_lists(const SampleRange& samples, Column& column) const {
  const IdLists& lists = column.source->lists;
  column.ids.clear();
  std::int64_t sample = 0;
  std::int64_t* splits = column.splits.data();
  for (std::size_t r = 0; r < batches_.size(); ++r, splits += per_replica_ + 1) {
    const auto begin = static_cast<std::int64_t>(column.ids.size());
    column.begin[r] = begin;
    std::int64_t* next = splits;
    *next++ = 0;
    const std::int64_t last =
        std::min(samples.size, static_cast<std::int64_t>(r + 1) * per_replica_);
    for (; sample < last; ++sample) {
      const auto list =
          static_cast<std::size_t>(samples.all.id(samples.first + sample, column.source->owner));
      column.ids.insert(column.ids.end(), lists.ids.begin() + lists.splits[list],
                        lists.ids.begin() + lists.splits[list + 1]);
      *next++ = static_cast<std::int64_t>(column.ids.size()) - begin;
    }
  }
  column.begin.back() = static_cast<std::int64_t>(column.ids.size());
}

}  // namespace embertable::jobs
