#pragma once

#include <mutex>

namespace embertable::mpi {

/// Excludes calls of MPI from each other, since it may be initialised with MPI_THREAD_SERIALIZED.
std::mutex& calls() noexcept;

}  // namespace embertable::mpi
