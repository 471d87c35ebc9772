#pragma once

#include "exchange/mpi/library.h"

namespace embertable::mpi {

/// Returns the MPI library of this process. The first call looks for it: in the process itself; by
/// EMBERTABLE_MPI_LIBRARY; if a launcher started the process, beside the launcher and by the names
/// that MPI libraries have. Throws StateError if there is none, IoError if it cannot be used; both
/// name what was looked for.
Library& library();

}  // namespace embertable::mpi
