#include "embertable/tensorflow/partitioned_csr.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "base/enumerators.h"
#include "base/float_environment.h"
#include "config/enumerations.h"
#include "embertable/errors.h"
#include "input/batch_rules.h"
#include "input/denominator.h"

namespace embertable {
namespace {

[[noreturn]] void refuse_at(std::int64_t sample, std::int64_t position, const std::string& rule) {
  input::DataPlace place = input::DataPlace::of_call("to_coo");
  place.sample = sample;
  place.position = position;
  input::refuse_data(place, rule);
}

/// Writes the entries of one sample after another.
class CooWriter {
 public:
  CooWriter(IntegerSpan ids, FloatSpan weights, Combiner combiner)
      : ids_(ids), weights_(weights), combiner_(combiner) {
    if (weights.size() > 1 && weights.size() != ids.size()) {
      throw ValueError("weights must be none, one or as many as the ids, " +
                       std::to_string(ids.size()) + ", got " + std::to_string(weights.size()));
    }
    entries_.reserve(ids.size());
  }

  /// Adds the ids begin <= i < end of a sample.
  void add(std::int64_t sample, std::int64_t begin, std::int64_t end) {
    gains_.clear();
    for (std::int64_t i = begin; i < end; ++i) gains_.push_back(weight(i));
    if (combiner_ != Combiner::kSum && !gains_.empty()) {
      const float by = input::denominator_of(gains_.data(), std::ssize(gains_), combiner_);
      for (float& gain : gains_) gain = by == 0 ? 0 : gain / by;
    }
    const std::size_t first = entries_.size();
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t id = ids_[i];
      if (id < 0) refuse_at(sample, i, "id must be >= 0, got " + std::to_string(id));
      const float gain = gains_[i - begin];
      if (entries_.size() > first && entries_.back().id == id) {
        entries_.back().gain += gain;
      } else {
        entries_.push_back({sample, id, gain});
      }
    }
  }

  std::vector<CooEntry> take() { return std::move(entries_); }

 private:
  float weight(std::int64_t i) const {
    return weights_.size() == 0 ? 1.0f : weights_[weights_.size() == 1 ? 0 : i];
  }

  IntegerSpan ids_;
  FloatSpan weights_;
  Combiner combiner_;
  std::vector<float> gains_;
  std::vector<CooEntry> entries_;
};

void add_all(const DenseIds& ids, std::int64_t num_samples, CooWriter& writer) {
  if (ids.values.size() != 0 && ids.values.size() != num_samples) {
    throw ValueError("dense ids must be none or one for each of " + std::to_string(num_samples) +
                     " samples, got " + std::to_string(ids.values.size()));
  }
  for (std::int64_t i = 0; i < ids.values.size(); ++i) writer.add(i, i, i + 1);
}

void add_all(const SparseIds& ids, std::int64_t num_samples, CooWriter& writer) {
  if (ids.dense_shape.rank() != 2 || ids.dense_shape[0] > num_samples) {
    throw ValueError("dense_shape must be of rank 2 with at most " + std::to_string(num_samples) +
                     " samples, got " + ids.dense_shape.to_string());
  }
  const std::int64_t entries = ids.values.size();
  input::require_indices(ids, input::DataPlace::of_call("to_coo"));
  std::int64_t before = 0;
  for (std::int64_t begin = 0, end = 0; begin < entries; begin = end) {
    const std::int64_t sample = ids.indices[begin * 2];
    if (sample < before || sample >= num_samples) {
      refuse_at(sample, begin,
                "samples must rise and be below " + std::to_string(num_samples) + ", got " +
                    std::to_string(sample) + " after " + std::to_string(before));
    }
    before = sample;
    while (end < entries && ids.indices[end * 2] == sample) ++end;
    writer.add(sample, begin, end);
  }
}

void add_all(const RaggedIds& ids, std::int64_t num_samples, CooWriter& writer) {
  const IntegerSpan& splits = ids.row_splits;
  if (splits.size() - 1 != num_samples) {
    refuse_at(-1, splits.size(),
              "row_splits must be one number more than the " + std::to_string(num_samples) +
                  " samples, got " + std::to_string(splits.size()));
  }
  const input::DataPlace place = input::DataPlace::of_call("to_coo");
  input::require_ends(splits, ids.values.size(), place);
  for (std::int64_t i = 1; i <= num_samples; ++i)
    if (splits[i] < splits[i - 1]) input::refuse_fall(splits, i, 0, place);
  std::int64_t begin = 0;
  for (std::int64_t i = 0; i < num_samples; ++i) {
    const std::int64_t end = splits[i + 1];
    if (end < begin || end > ids.values.size()) input::refuse_changing_splits(place);
    writer.add(i, begin, end);
    begin = end;
  }
  if (begin != ids.values.size()) input::refuse_changing_splits(place);
}

/// Adds an entry to its neighbour if both have the same sample and id.
void merge_neighbours(std::vector<CooEntry>& entries) {
  std::size_t kept = 0;
  for (const CooEntry& entry : entries) {
    if (kept > 0 && entries[kept - 1].sample == entry.sample && entries[kept - 1].id == entry.id) {
      entries[kept - 1].gain += entry.gain;
    } else {
      entries[kept++] = entry;
    }
  }
  entries.resize(kept);
}

}  // namespace

std::vector<CooEntry> to_coo(const FeatureIds& ids, FloatSpan weights, Combiner combiner,
                             std::int64_t num_samples) {
  if (num_samples < 0)
    throw ValueError("num_samples must be >= 0, got " + std::to_string(num_samples));
  check_enumerator(combiner, "combiner");
  const FloatEnvironment ours;
  const IntegerSpan values = std::visit([](const auto& kind) { return kind.values; }, ids);
  CooWriter writer(values, weights, combiner);
  std::visit([&](const auto& kind) { add_all(kind, num_samples, writer); }, ids);
  return writer.take();
}

PartitionedCsr partition(std::span<const CooEntry> entries, std::int64_t num_shards) {
  if (num_shards < 1 || num_shards > std::numeric_limits<std::int32_t>::max())
    throw ValueError("num_shards must be 1 <= num_shards < 2^31, got " +
                     std::to_string(num_shards));
  for (const CooEntry& entry : entries)
    if (entry.id < 0) throw ValueError("ids must be >= 0, got " + std::to_string(entry.id));
  const FloatEnvironment ours;
  std::vector<CooEntry> sorted(entries.begin(), entries.end());
  std::stable_sort(sorted.begin(), sorted.end(), [&](const CooEntry& a, const CooEntry& b) {
    const std::int64_t shard_a = a.id % num_shards, shard_b = b.id % num_shards;
    if (shard_a != shard_b) return shard_a < shard_b;
    return a.id != b.id ? a.id < b.id : a.sample < b.sample;
  });
  merge_neighbours(sorted);
  PartitionedCsr csr;
  auto entry = sorted.begin();
  for (std::int64_t shard = 0; shard < num_shards; ++shard) {
    csr.segment_begin.push_back(std::ssize(csr.row));
    for (; entry != sorted.end() && entry->id % num_shards == shard; ++entry) {
      csr.row.push_back(entry->id / num_shards);
      csr.sample.push_back(entry->sample);
      csr.gain.push_back(entry->gain);
    }
    csr.segment_end.push_back(std::ssize(csr.row));
    while (csr.row.size() % PartitionedCsr::kSegmentUnit != 0) {
      csr.row.push_back(PartitionedCsr::kPadding);
      csr.sample.push_back(PartitionedCsr::kPadding);
      csr.gain.push_back(0);
    }
  }
  return csr;
}

}  // namespace embertable
