#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "embertable/row_type.h"

namespace embertable::bench {

struct RowTypesBenchOptions {
  RowType row_type = RowType::kInt8;  ///< compared with float32; not float32 itself
  std::filesystem::path directory;    ///< where checkpoints are written, and removed
  std::int64_t bytes = 0;             ///< size of the rows as float32
  int repetitions = 7;
};

/// Looks up rows of one type in turns with the same rows as float32, one and twenty ids a sample.
/// Rates beside those of bare loops that read the same bytes and write the same activations.
/// Returns text for people, or one JSON object per line. Throws std::runtime_error if memory does
/// not suffice.
std::string run_row_types(const RowTypesBenchOptions& options, bool json);

}  // namespace embertable::bench
