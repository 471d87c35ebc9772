#pragma once

#include <cstdint>
#include <vector>

#include "embertable/embertable.h"

namespace embertable::bench {

/// How the ids of a lookup are given. All forms name one row for each sample and feature.
enum class ServingForm : std::uint8_t { kDense, kSparseSafe, kSparseFast, kRagged };
const char* to_string(ServingForm form);

/// Standard workload of serving: a feature for each of 26 tables of 1,000 rows of 64 floats.
inline constexpr std::int64_t kServingTables = 26;
inline constexpr std::int64_t kServingRows = 1000;
inline constexpr std::int32_t kServingDim = 64;

/// A feature for each table, in a tuple.
Nested<FeatureConfig> serving_features(ServingForm form, std::int64_t rows, std::int64_t tables,
                                       std::int32_t dim);

/// Inputs of many calls: ids at random, evenly.
class ServingInputs {
 public:
  ServingInputs(ServingForm form, const Structure& structure, std::int64_t rows,
                std::int64_t samples, std::int64_t calls);
  ServingInputs(const ServingInputs&) = delete;
  ServingInputs& operator=(const ServingInputs&) = delete;

  const Batch& operator[](std::int64_t call) const {
    return batches_[static_cast<std::size_t>(call) % batches_.size()];
  }

  /// Of one call, by feature.
  const std::int64_t* ids(std::int64_t call) const {
    return ids_.data() + call % std::ssize(batches_) * features_ * samples_;
  }

 private:
  std::int64_t features_, samples_;
  std::vector<std::int64_t> ids_;      ///< [calls, features, samples]
  std::vector<std::int64_t> indices_;  ///< [samples, 2], of every sparse input
  std::vector<std::int64_t> splits_;   ///< [samples + 1], of every ragged input
  std::vector<Batch> batches_;
};

}  // namespace embertable::bench
