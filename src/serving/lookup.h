#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "embertable/embedding.h"
#include "embertable/executor.h"
#include "embertable/serving.h"
#include "kernels/level.h"
#include "serving/input.h"

namespace embertable::serving {

/// Returns the rows that a feature of the configuration reads. Throws KeyError.
using RowsOfFeature = FunctionRef<Rows(std::int64_t feature)>;

/// Returns the rows of a caller-owned table. Throws KeyError if it is missing, ValueError for
/// another size, and unless it has memory of one type.
Rows viewed_rows(const TablePtr& table, const std::map<TablePtr, TableView>& tables);

/// Memory that starts on a cache line and is kept from one use to the next.
class LineMemory {
 public:
  /// Returns memory of at least this size, whose contents are unspecified. Throws IoError.
  std::byte* take(std::int64_t bytes);

  std::int64_t capacity() const noexcept { return capacity_; }

 private:
  struct Free {
    void operator()(std::byte* memory) const noexcept;
  };
  std::unique_ptr<std::byte, Free> memory_;
  std::int64_t capacity_ = 0;
};

/// One lookup after another into the same memory: the implementation of LookupOutput.
class Lookup {
 public:
  /// Looks up into `output` as serving_embedding_lookup does, except for the form.
  static void run(const Batch& batch, const Nested<FeatureConfig>& features, RowsOfFeature rows_of,
                  SimdLevel level, LookupOutput& output, const LookupForm& form = {});

  /// Does everything but the gather: checks inputs and lists their entries, without activations.
  void prepare(const Batch& batch, const Nested<FeatureConfig>& features, RowsOfFeature rows_of,
               const LookupForm& form);

  /// Returns the lookup behind an output, or null if nothing was looked up into it.
  static const Lookup* of(const LookupOutput& output) noexcept { return output.lookup_.get(); }

  /// Marks an output so that no gradients can be taken for it.
  static void forget(LookupOutput& output) noexcept;

  /// Ends a lookup; its buffer, if small, is cached for the next one on this thread.
  static void end(std::unique_ptr<Lookup> lookup) noexcept;

  const Structure& structure() const noexcept { return structure_; }
  const std::vector<Activation>& activations() const noexcept { return activations_; }
  bool threw() const noexcept { return threw_; }

  /// The inputs in order; filled unless the last lookup threw.
  const std::vector<Input>& inputs() const noexcept { return inputs_; }

  /// The feature of an input.
  std::int64_t feature_of(std::size_t input) const { return feature_of_[input]; }

  /// LookupForm::owner of the last lookup; 0 after one that threw.
  std::uint64_t owner() const noexcept { return owner_; }

 private:
  Structure structure_;                   ///< structure of the inputs
  Structure features_;                    ///< structure in which the inputs' paths were found
  std::vector<std::int64_t> feature_of_;  ///< by input
  std::vector<Input> inputs_;
  std::vector<Activation> activations_;  ///< by input; none after an error
  LineMemory memory_;                    ///< activations, then the scratch of each input
  SortBuffers sort_;
  std::uint64_t owner_ = 0;
  bool threw_ = false;  ///< the last lookup
};

}  // namespace embertable::serving
