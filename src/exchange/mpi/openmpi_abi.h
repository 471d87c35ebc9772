#pragma once

#include <cstddef>
#include <cstdint>

#include "exchange/mpi/library.h"

/// The ABI that Open MPI has had since version 4.0. Source: ompi/include/mpi.h.in of 4.1.4 and
/// 5.0.11, with the names of its macros. Predefined handles are addresses of objects.
namespace embertable::mpi::openmpi {

using Comm = struct ompi_communicator_t*;
using Datatype = struct ompi_datatype_t*;
using Errhandler = struct ompi_errhandler_t*;
using Request = struct ompi_request_t*;

struct Status {
  int MPI_SOURCE;
  int MPI_TAG;
  int MPI_ERROR;
  int cancelled;
  std::size_t ucount;
};

inline constexpr int kAnySource = -1;           // MPI_ANY_SOURCE
inline constexpr int kUndefined = -32766;       // MPI_UNDEFINED
inline constexpr int kThreadSerialized = 2;     // MPI_THREAD_SERIALIZED
inline constexpr int kMaxErrorString = 256;     // MPI_MAX_ERROR_STRING
inline constexpr int kMaxLibraryVersion = 256;  // MPI_MAX_LIBRARY_VERSION_STRING

struct Handles {
  Comm comm_world;
  Comm comm_null;
  Datatype byte;
  Request request_null;
  Errhandler errors_return;
};

inline Handles handles(const Symbols& symbols) {
  return {static_cast<Comm>(symbols.object("ompi_mpi_comm_world")),
          static_cast<Comm>(symbols.object("ompi_mpi_comm_null")),
          static_cast<Datatype>(symbols.object("ompi_mpi_byte")),
          static_cast<Request>(symbols.object("ompi_request_null")),
          static_cast<Errhandler>(symbols.object("ompi_mpi_errors_return"))};
}

/// Turns the number that Fortran programs know a communicator by into its handle.
struct FromFortran {
  explicit FromFortran(const Symbols& symbols) { symbols.get("MPI_Comm_f2c", convert); }
  Comm operator()(int number) const { return convert(number); }
  Comm (*convert)(int) = nullptr;
};

inline std::uintptr_t number_of(Comm comm) noexcept {
  return reinterpret_cast<std::uintptr_t>(comm);
}

}  // namespace embertable::mpi::openmpi
