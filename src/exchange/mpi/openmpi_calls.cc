#include <algorithm>
#include <mutex>
#include <string>

#include "embertable/errors.h"
#include "exchange/mpi/calls_lock.h"
#include "exchange/mpi/openmpi_abi.h"

namespace embertable::mpi {

namespace openmpi {
namespace {
#include "exchange/mpi/calls.inl"
}  // namespace
}  // namespace openmpi

std::unique_ptr<Library> open_openmpi(const Symbols& symbols) {
  return std::make_unique<openmpi::LoadedLibrary>(symbols);
}

}  // namespace embertable::mpi
