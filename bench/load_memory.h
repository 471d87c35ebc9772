#pragma once

#include <cstddef>
#include <string>

#include "bench/load.h"

namespace embertable::bench {

/// How often a measurement holds what a load is made of.
struct LoadCopies {
  int engines = 1;
  bool bare = true;  ///< the tables of the bare loops too
  int batches = 1;
};

/// Bytes that a load takes, within a fifth and 100 MB.
std::size_t bytes_for(const Load& load, const LoadCopies& copies = {});

/// "needs 1.5 GB, 20.1 GB are free".
std::string memory_needed(std::size_t bytes, std::size_t free_bytes);

/// Whether so much may be taken of the free memory: four fifths. 0 free: nobody knows.
bool fits(std::size_t bytes, std::size_t free_bytes);

/// Throws std::runtime_error naming the load, what it needs and what is free where it does not fit.
void require_memory(const Load& load, const LoadCopies& copies, std::size_t free_bytes);

/// Gives a load's tables half of their rows until it fits; true if that took any. Throws as
/// require_memory does where a thousand rows are still too many.
bool make_fit(Load& load, const LoadCopies& copies, std::size_t free_bytes);

}  // namespace embertable::bench
