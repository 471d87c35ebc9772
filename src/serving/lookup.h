#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "embertable/embedding.h"
#include "embertable/executor.h"
#include "embertable/serving.h"
#include "kernels/level.h"
#include "serving/input.h"

namespace embertable::serving {

/// The tables of a lookup: the rows that a feature of the configuration reads. Throws KeyError.
using RowsOfFeature = FunctionRef<Rows(std::int64_t feature)>;

/// One lookup after another into the same memory: what is behind LookupOutput.
class Lookup {
 public:
  /// Looks up into `output`, as serving_embedding_lookup says.
  static void run(const Batch& batch, const Nested<FeatureConfig>& features, RowsOfFeature rows_of,
                  SimdLevel level, LookupOutput& output);

  /// Of an output that is gone: where it is small, this thread's next output takes its memory.
  static void end(std::unique_ptr<Lookup> lookup) noexcept;

  const Structure& structure() const noexcept { return structure_; }
  const std::vector<Activation>& activations() const noexcept { return activations_; }

 private:
  void run(const Batch& batch, const Nested<FeatureConfig>& features, RowsOfFeature rows_of,
           SimdLevel level);
  void match_paths(const Structure& inputs, const Structure& features);
  void measure_all(const Batch& batch, const Nested<FeatureConfig>& features,
                   RowsOfFeature rows_of);
  void take_memory();
  void fill_all();
  void gather_all(SimdLevel level) noexcept;

  struct Free {
    void operator()(std::byte* memory) const noexcept;
  };

  Structure structure_;                   ///< of the inputs
  Structure features_;                    ///< that the inputs' paths were found in
  std::vector<std::int64_t> feature_of_;  ///< by input
  std::vector<Input> inputs_;
  std::vector<Activation> activations_;      ///< by input; none after an error
  std::unique_ptr<std::byte, Free> memory_;  ///< activations, then the scratch of each input
  std::int64_t capacity_ = 0;
  SortBuffers sort_;
};

}  // namespace embertable::serving
