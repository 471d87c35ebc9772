#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "bench/lane.h"

namespace embertable::bench {

/// The training step as plain loops over binary32 numbers, in the promised order:
/// activations left to right from the first row; a row's gradients left to right within pieces of
/// 4,096 samples, the pieces left to right; squares in 16 lanes, folded by halves.
class ScalarModel {
 public:
  explicit ScalarModel(const Workload& workload);

  /// The sum of the rows of one sample; zeros if it has none.
  std::vector<float> activation(const WorkloadBatch& batch, std::int32_t table,
                                std::int32_t sample) const;

  /// Applies gradients that are laid out as the lane's.
  void train(const WorkloadBatch& batch, std::span<const float> gradients, const Lane& lane);

  std::span<const float> row(std::int32_t table, std::int64_t row) const;
  float slot(std::int32_t table, std::int64_t row) const;

 private:
  struct Table {
    std::vector<float> rows;
    std::vector<float> slots;
  };

  std::vector<float> row_gradient(const std::vector<std::int32_t>& samples, std::int32_t table,
                                  std::span<const float> gradients, const Lane& lane) const;
  void apply(Table& table, std::size_t row, std::span<const float> gradient) const;

  std::size_t dim_;
  std::int32_t samples_;
  std::vector<Table> tables_;
};

}  // namespace embertable::bench
