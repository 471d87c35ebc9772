#include "python/src/signatures.h"

namespace embertable::python {

std::optional<bool> can_be_called(nb::handle function, const nb::tuple& arguments,
                                  const nb::dict& keywords) {
  nb::object signature;
  try {
    signature = nb::module_::import_("inspect").attr("signature")(function);
  } catch (const nb::python_error& error) {
    if (!error.matches(PyExc_ValueError) && !error.matches(PyExc_TypeError)) throw;
    return std::nullopt;
  }
  try {
    signature.attr("bind")(*arguments, **nb::borrow<nb::kwargs>(keywords));
    return true;
  } catch (const nb::python_error& error) {
    if (!error.matches(PyExc_TypeError)) throw;
    return false;
  }
}

}  // namespace embertable::python
