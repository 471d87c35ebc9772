#pragma once

#include <nanobind/nanobind.h>

#include <exception>
#include <memory>
#include <string>

#include "embertable/errors.h"
#include "python/src/arguments.h"
#include "python/src/gil.h"

namespace embertable::python {

namespace nb = nanobind;

/// An exception that a Python function raised. Its text is one line, since it may become the reason
/// that other hosts are told; Python gets the exception itself, with its traceback. Unlike
/// nanobind's, it can be given to several threads, such as those of the replicas of a step that
/// failed.
class RaisedError final : public std::exception {
 public:
  /// Requires the GIL.
  explicit RaisedError(const nb::python_error& error)
      : error_(std::make_shared<const nb::python_error>(error)), text_(line_of(value())) {}

  const char* what() const noexcept override { return text_.c_str(); }
  nb::handle value() const noexcept { return error_->value(); }

  /// Makes it Python's current error. Requires the GIL.
  void set() const noexcept {
    PyObject* const raised = nb::borrow(value()).release().ptr();
#if PY_VERSION_HEX >= 0x030C0000
    PyErr_SetRaisedException(raised);
#else
    PyErr_Restore(nb::borrow(value().type()).release().ptr(), raised,
                  PyException_GetTraceback(raised));
#endif
  }

 private:
  static std::string line_of(nb::handle raised) {
    const std::string type = type_text(raised);
    try {
      return type + ": " + text(raised);
    } catch (const nb::python_error&) {  // its own text raises
      return type;
    }
  }

  std::shared_ptr<const nb::python_error> error_;
  std::string text_;
};

/// Calls a function of C++'s that calls Python, on any thread. What Python raises there becomes a
/// RaisedError, since it may reach several threads.
template <class Call>
auto with_gil(Call call) {
  const WithGil gil;
  try {
    return call();
  } catch (const nb::python_error& error) {
    throw RaisedError(error);
  }
}

/// A Python callable, or an object with methods, that C++ may keep, call and destroy on any thread,
/// with or without the GIL.
class Callback {
 public:
  explicit Callback(nb::object function) : function_(std::move(function)) {}
  Callback(const Callback&) = delete;
  Callback& operator=(const Callback&) = delete;
  ~Callback() {
    if (!function_.is_valid()) return;
    if (!Py_IsInitialized()) {
      function_.release();  // nobody is left to free it
      return;
    }
    const WithGil gil;
    function_.reset();
  }

  /// Requires the GIL. Throws what the function raises, and StateError after the garbage collector
  /// has taken the function.
  template <class... Args>
  nb::object operator()(Args&&... args) const {
    return call([&] { return function_(std::forward<Args>(args)...); });
  }

  /// Calls a method of the object, otherwise as above.
  template <class... Args>
  nb::object method(const char* name, Args&&... args) const {
    return call([&] { return function_.attr(name)(std::forward<Args>(args)...); });
  }

  const nb::object& function() const noexcept { return function_; }
  nb::object& function() noexcept { return function_; }

 private:
  template <class Call>
  nb::object call(Call call) const {
    if (!function_.is_valid()) throw StateError("the Python function is gone");
    try {
      return call();
    } catch (const nb::python_error& error) {
      throw RaisedError(error);
    }
  }

  nb::object function_;
};

using CallbackPtr = std::shared_ptr<Callback>;

/// Throws TypeError naming `what` unless the function is callable.
inline CallbackPtr make_callback(nb::handle function, const char* what) {
  if (!PyCallable_Check(function.ptr())) {
    throw TypeError(std::string(what) + " must be callable, got " +
                    nb::type_name(function.type()).c_str());
  }
  return std::make_shared<Callback>(nb::borrow(function));
}

}  // namespace embertable::python
