#pragma once

#include <nanobind/nanobind.h>

#include <optional>
#include <string>
#include <vector>

#include "embertable/tensorflow/tensor_bundle.h"

namespace embertable::python {

namespace nb = nanobind;

/// Returns the NumPy dtype for numbers of a bundle. Throws NotImplemented for bfloat16 without the
/// package ml_dtypes, and for types that bundles have but arrays do not: "`what` is of ...".
nb::object numpy_dtype(BundleDType dtype, const std::string& what);

/// Returns the dtype of this name, "float32"; empty if our bundles do not have it.
std::optional<BundleDType> bundle_dtype_of(const std::string& name);

/// Returns the part of a tensor that Python's slices take: one slice or a tuple of at most as many
/// as there are axes, each with steps of 1, clipped as NumPy does. `what` begins the messages.
/// Throws TypeError, ValueError.
SliceSpec slice_spec(nb::handle slices, const std::vector<std::int64_t>& shape,
                     const std::string& what);

/// Converts back: to a tuple of slices.
nb::object to_python(const TensorSlice& slice);

nb::tuple to_tuple(const std::vector<std::int64_t>& shape);

}  // namespace embertable::python
