#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "embertable/config.h"
#include "embertable/shape.h"
#include "input/batch_rules.h"

namespace embertable {

/// How the ids of one feature become entries; resolved once per engine (and per build for the
/// shape).
struct FeatureSpec {
  std::string path;  ///< names the feature in messages
  std::int64_t vocabulary_size = 0;
  Combiner combiner = Combiner::kSum;
  std::int64_t max_sequence_length = 0;
  /// By FeatureConfig or build arguments: max_sequence_length is ignored.
  bool shape_is_configured = false;
  Shape output_shape;  ///< S of one replica, fully defined once built
  bool drop_out_of_range = false;
  bool variable_batch = false;  ///< S[0] may be smaller in a batch
  bool wide = false;            ///< row numbers are uint64

  /// Whether the samples of ids of this rank give sequences of output rows.
  bool makes_sequences(int rank) const {
    return rank == 2 && !shape_is_configured && max_sequence_length > 0;
  }

  /// Returns S of a batch with this many output rows, none if the built shape does not allow it.
  std::optional<Shape> shape_of(std::int64_t outputs) const;
};

namespace input {

/// Throws errors about one feature of one replica's batch. Borrows the spec.
struct Refusal {
  const FeatureSpec* spec = nullptr;
  std::int32_t replica = 0;

  DataPlace place() const { return {spec->path, replica}; }

  /// Throws ValueError.
  [[noreturn]] void operator()(const std::string& rule) const;

  /// Throws DataError; -1: none.
  [[noreturn]] void at(std::int64_t sample, std::int64_t position, const std::string& rule) const;
};

}  // namespace input
}  // namespace embertable
