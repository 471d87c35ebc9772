#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <string>

#include "embertable/exchange.h"
#include "python/src/callback.h"

namespace embertable::python {

/// Returns what an Exchange of Python's is to an engine. Throws TypeError for another object, or
/// one whose class does not call its base's __init__.
std::shared_ptr<Exchange> exchange_of(nb::handle value);

/// Makes the exchange of processes that run MPI. `communicator`: None, or what has mpi4py's `py2f`.
/// `deadline`: seconds, or None for the default. Throws TypeError, and as make_mpi_exchange.
std::shared_ptr<Exchange> mpi_exchange(nb::handle communicator, nb::handle deadline);

/// Returns what the argument `exchange` names: "mpi", a communicator of mpi4py's, an Exchange; null
/// for None. `of`: what has the argument, for messages. Throws ValueError for another text and for
/// a deadline without MPI, and as the functions above.
std::shared_ptr<Exchange> chosen_exchange(nb::handle value, nb::handle deadline,
                                          const std::string& of);

/// Returns the object whose methods an exchange calls, null if they are C++.
CallbackPtr python_object_of(const std::shared_ptr<Exchange>& exchange);

}  // namespace embertable::python
