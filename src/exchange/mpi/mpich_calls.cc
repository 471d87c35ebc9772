#include <algorithm>
#include <mutex>
#include <string>

#include "embertable/errors.h"
#include "exchange/mpi/calls_lock.h"
#include "exchange/mpi/mpich_abi.h"

namespace embertable::mpi {

namespace mpich {
namespace {
#include "exchange/mpi/calls.inl"
}  // namespace
}  // namespace mpich

std::unique_ptr<Library> open_mpich(const Symbols& symbols) {
  return std::make_unique<mpich::LoadedLibrary>(symbols);
}

}  // namespace embertable::mpi
