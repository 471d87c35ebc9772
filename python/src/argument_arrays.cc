#include "python/src/argument_arrays.h"

#include "embertable/errors.h"
#include "python/src/arguments.h"
#include "python/src/arrays.h"
#include "python/src/text_caster.h"

namespace embertable::python {

nb::object array_of_argument(nb::handle argument, const std::string& what, const char* rule,
                             const char* hint) {
  try {
    return numpy_array_of(argument);
  } catch (nb::python_error& error) {
    const bool listed = PyList_Check(argument.ptr()) || PyTuple_Check(argument.ptr());
    const bool uneven = listed && error.matches(PyExc_ValueError);
    if (!uneven) refuse_recorded(argument, what);
    if (!error.matches(PyExc_ValueError)) throw;
    throw ValueError(what + " must be " + rule + ", got " + type_text(argument) +
                     " of uneven lengths" + hint);
  }
}

void refuse_recorded(nb::handle argument, const std::string& what) {
  const nb::module_ recording = nb::module_::import_("embertable._recording");
  const nb::object reason = recording.attr("reason_to_refuse_argument")(argument, what);
  if (!reason.is_none()) throw StateError(text(reason));
}

}  // namespace embertable::python
