#pragma once

#include <cstdint>

namespace embertable {

/// Selects the rules to follow where revisions of the original differ.
enum class ApiRevision : std::uint8_t {
  kOutputShapes = 0,  ///< every feature has an output shape of its own
  kBatchSize = 1,     ///< release 2.4: all features of all replicas share one batch size
};

}  // namespace embertable
