#pragma once

#include <cstdint>
#include <memory>

#include "embertable/exchange.h"
#include "embertable/version.h"

namespace embertable::mpi {

/// Messages are cut into segments of this size, since MPI counts bytes in an int.
inline constexpr std::int64_t kSegmentBytes = std::int64_t{4} << 20;

/// Like make_mpi_exchange, with segments of another size, as a library of another version.
/// Requires: 1 <= segment_bytes <= INT_MAX, the same on all ranks.
std::unique_ptr<Exchange> make_exchange(const MpiOptions& options, std::int64_t segment_bytes,
                                        const char* version = kVersion);

}  // namespace embertable::mpi
