#pragma once

#include <cstdint>

#include "exchange/mpi/library.h"

/// The ABI that MPICH has had since version 3.1, and Intel MPI, MVAPICH and Cray MPICH with it.
/// Source: src/include/mpi.h.in of MPICH 4.0.2 and 5.0.2, with the names of its macros. Handles are
/// numbers.
namespace embertable::mpi::mpich {

using Comm = int;
using Datatype = int;
using Errhandler = int;
using Request = int;

struct Status {
  int count_lo;
  int count_hi_and_cancelled;
  int MPI_SOURCE;
  int MPI_TAG;
  int MPI_ERROR;
};

inline constexpr int kAnySource = -2;            // MPI_ANY_SOURCE
inline constexpr int kUndefined = -32766;        // MPI_UNDEFINED
inline constexpr int kThreadSerialized = 2;      // MPI_THREAD_SERIALIZED
inline constexpr int kMaxErrorString = 512;      // MPI_MAX_ERROR_STRING
inline constexpr int kMaxLibraryVersion = 8192;  // MPI_MAX_LIBRARY_VERSION_STRING

struct Handles {
  Comm comm_world = 0x44000000;
  Comm comm_null = 0x04000000;
  Datatype byte = 0x4c00010d;
  Request request_null = 0x2c000000;
  Errhandler errors_return = 0x54000001;
};

inline Handles handles(const Symbols& /*symbols*/) { return {}; }

/// A Fortran program knows a communicator by its handle.
struct FromFortran {
  explicit FromFortran(const Symbols& /*symbols*/) {}
  Comm operator()(int number) const { return number; }
};

inline std::uintptr_t number_of(Comm comm) noexcept { return static_cast<std::uintptr_t>(comm); }

}  // namespace embertable::mpi::mpich
