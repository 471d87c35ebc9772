#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "bench/loads/load.h"

namespace embertable::bench {

/// Number of copies of a load's parts that a measurement holds.
struct LoadCopies {
  int tables = 2;  ///< engines, and the bare loops where they run beside an engine
  int batches = 1;
  int processes = 1;  ///< each holds all of the load but its tables
};

/// Returns the bytes that a load needs, within a fifth and 100 MB.
std::size_t bytes_for(const Load& load, const LoadCopies& copies = {});

/// Returns "needs 1.5 GB, 20.1 GB are free".
std::string memory_needed(std::size_t bytes, std::size_t free_bytes);

/// True if the bytes are at most four fifths of the free memory, or if free_bytes is 0: unknown.
bool fits(std::size_t bytes, std::size_t free_bytes);

/// Throws std::runtime_error naming the load, what it needs and what is free, if it does not fit.
void require_memory(const Load& load, const LoadCopies& copies, std::size_t free_bytes);

/// Halves the rows of a load's tables until it fits, and returns true if it halved them. Throws as
/// require_memory if a thousand rows are still too many.
bool make_fit(Load& load, const LoadCopies& copies, std::size_t free_bytes);

/// Does the same, and says on standard error what rows are left.
void make_fit_and_say(Load& load, const LoadCopies& copies, std::size_t free_bytes);

/// Returns a standard load with the given rows and batches; 0 stands for its own. Its own rows are
/// halved until it fits into the free memory. Throws as require_memory if given rows do not fit.
Load sized_load(Load standard, std::int64_t rows, std::int32_t batches,
                const LoadCopies& copies = {});

}  // namespace embertable::bench
