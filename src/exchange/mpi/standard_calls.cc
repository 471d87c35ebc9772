#include <algorithm>
#include <mutex>
#include <string>

#include "embertable/errors.h"
#include "exchange/mpi/calls_lock.h"
#include "exchange/mpi/standard_abi.h"

namespace embertable::mpi {

namespace standard {
namespace {
#include "exchange/mpi/calls.inl"
}  // namespace
}  // namespace standard

std::unique_ptr<Library> open_standard(const Symbols& symbols) {
  return std::make_unique<standard::LoadedLibrary>(symbols);
}

}  // namespace embertable::mpi
