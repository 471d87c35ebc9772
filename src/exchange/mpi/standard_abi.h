#pragma once

#include <cstdint>

#include "exchange/mpi/library.h"

/// The ABI that MPI 5.0 standardises. Source: MPI 5.0, chapter 20 and appendix A, as in the
/// mpi_abi.h of MPICH 5.0.2, with the names of its macros. Predefined handles are small numbers.
namespace embertable::mpi::standard {

using Comm = struct MPI_ABI_Comm*;
using Datatype = struct MPI_ABI_Datatype*;
using Errhandler = struct MPI_ABI_Errhandler*;
using Request = struct MPI_ABI_Request*;

struct Status {
  int MPI_SOURCE;
  int MPI_TAG;
  int MPI_ERROR;
  int MPI_internal[5];
};

inline constexpr int kAnySource = -1;            // MPI_ANY_SOURCE
inline constexpr int kUndefined = -32766;        // MPI_UNDEFINED
inline constexpr int kThreadSerialized = 2048;   // MPI_THREAD_SERIALIZED
inline constexpr int kMaxErrorString = 512;      // MPI_MAX_ERROR_STRING
inline constexpr int kMaxLibraryVersion = 8192;  // MPI_MAX_LIBRARY_VERSION_STRING

inline constexpr std::uintptr_t kCommNull = 0x100;
inline constexpr std::uintptr_t kCommWorld = 0x101;
inline constexpr std::uintptr_t kErrorsReturn = 0x143;
inline constexpr std::uintptr_t kRequestNull = 0x180;
inline constexpr std::uintptr_t kByte = 0x247;

struct Handles {
  Comm comm_world;
  Comm comm_null;
  Datatype byte;
  Request request_null;
  Errhandler errors_return;
};

inline Handles handles(const Symbols& /*symbols*/) {
  // NOLINTBEGIN(performance-no-int-to-ptr): the standard makes pointers of these numbers
  return {reinterpret_cast<Comm>(kCommWorld), reinterpret_cast<Comm>(kCommNull),
          reinterpret_cast<Datatype>(kByte), reinterpret_cast<Request>(kRequestNull),
          reinterpret_cast<Errhandler>(kErrorsReturn)};
  // NOLINTEND(performance-no-int-to-ptr)
}

/// Turns the number that Fortran programs know a communicator by into its handle.
struct FromFortran {
  explicit FromFortran(const Symbols& symbols) { symbols.get("MPI_Comm_fromint", convert); }
  Comm operator()(int number) const { return convert(number); }
  Comm (*convert)(int) = nullptr;
};

inline std::uintptr_t number_of(Comm comm) noexcept {
  return reinterpret_cast<std::uintptr_t>(comm);
}

}  // namespace embertable::mpi::standard
