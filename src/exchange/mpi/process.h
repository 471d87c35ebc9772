#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>

#include "exchange/mpi/library.h"

namespace embertable::mpi {

/// A communicator of the caller's on which one exchange of this process stands.
class Parent {
 public:
  /// The world, or the communicator with this number in Fortran. Finds MPI and initialises it if
  /// nobody has; it is then finalised when the process ends. Throws StateError if MPI cannot be
  /// used now or another exchange has this communicator, ValueError if there is no such
  /// communicator.
  explicit Parent(std::optional<std::int32_t> fortran);
  ~Parent();
  Parent(const Parent&) = delete;
  Parent& operator=(const Parent&) = delete;

  Library& library() const noexcept { return library_; }
  Communicator& communicator() const noexcept { return *communicator_; }

 private:
  Library& library_;
  std::unique_ptr<Communicator> communicator_;
};

/// MPI is not finalised when this process ends: it would wait for processes that do not come.
void keep_from_finalizing() noexcept;

/// Meets all ranks of a communicator. Collective. Throws StateError on every rank if one has not
/// come by the deadline or runs another version of Embertable, and names it.
void greet(Communicator& communicator, const char* version, std::chrono::nanoseconds deadline);

}  // namespace embertable::mpi
