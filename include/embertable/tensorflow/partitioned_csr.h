#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "embertable/batch.h"
#include "embertable/config.h"
#include "embertable/version.h"

namespace embertable {

/// One looked-up id: `gain` times row `id` is a term of sample `sample`'s activation.
struct CooEntry {
  std::int64_t sample = 0;
  std::int64_t id = 0;
  float gain = 1;
  friend bool operator==(const CooEntry&, const CooEntry&) = default;
};

/// Turns the ids of samples into entries in the order of the samples, the combiner folded into the
/// gains: the weight (sum), the weight divided by the sample's sum of weights (mean) or by the root
/// of the sum of their squares (sqrtn), 0 where that is 0. Neighbouring entries of one sample with
/// the same id become one entry with the sum of the gains. Sums go left to right in binary32.
///
/// weights: one for each id, one for all, or none: every weight is 1. Dense ids: one for each
/// sample, or none at all. Sparse ids: rank 2, with rising samples. Source: the preprocessing of TF
/// tpu_embedding_v3.py and xla_ops.cc, ConvertToCooTensor.
///
/// Throws ValueError for another number of weights or of dense ids, another rank, more than
/// num_samples samples, or an unknown combiner; DataError, which names the position where there is
/// one, for an id below 0, another number of indices than the ids need, samples that fall or are
/// outside, splits that are not num_samples + 1, from 0, never falling, to the number of ids.
EMBERTABLE_API std::vector<CooEntry> to_coo(const FeatureIds& ids, FloatSpan weights,
                                            Combiner combiner, std::int64_t num_samples);

/// Entries by the shard of their id, id mod num_shards: shard s has the entries segment_begin[s] <=
/// i < segment_end[s], by rising id, then by sample. Segments start at multiples of 8, with padding
/// between them.
struct PartitionedCsr {
  std::vector<std::int64_t> segment_begin;  ///< [num_shards]
  std::vector<std::int64_t> segment_end;    ///< [num_shards], without padding
  std::vector<std::int64_t> row;            ///< id / num_shards; kPadding in padding
  std::vector<std::int64_t> sample;         ///< kPadding in padding
  std::vector<float> gain;                  ///< 0 in padding

  static constexpr std::int64_t kPadding = -1;
  static constexpr std::int64_t kSegmentUnit = 8;
};

/// Sorts entries by shard; entries of one sample and id become one, with the sum of their gains
/// from left to right. Throws ValueError unless 1 <= num_shards < 2^31, and for an id below 0.
EMBERTABLE_API PartitionedCsr partition(std::span<const CooEntry> entries, std::int64_t num_shards);

}  // namespace embertable
