#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <memory>

#include "embertable/exchange.h"
#include "python/src/callback.h"

namespace embertable::python {

/// An exchange whose methods are those of a Python object, for calls without the GIL.
class PythonExchange : public Exchange {
 public:
  virtual const CallbackPtr& object() const noexcept = 0;
};

/// Makes the exchange of a host, 0 <= host < hosts.
std::shared_ptr<PythonExchange> make_python_exchange(nb::object object, std::int32_t host,
                                                     std::int32_t hosts);

/// Adds the class of the objects that lend messages to Python.
void bind_messages_on_loan(nb::module_& module);

}  // namespace embertable::python
