#pragma once

#include <nanobind/nanobind.h>

#include <optional>
#include <string>
#include <vector>

#include "embertable/tensorflow/tensor_bundle.h"

namespace embertable::python {

namespace nb = nanobind;

/// The dtype of NumPy in which numbers of a bundle are given. Throws NotImplemented for bfloat16
/// without the package ml_dtypes, and for what bundles hold but no array does: "`what` is of ...".
nb::object numpy_dtype(BundleDType dtype, const std::string& what);

/// The one of this name, "float32"; nothing if bundles of ours have none of it.
std::optional<BundleDType> bundle_dtype_of(const std::string& name);

/// What Python's slices take of a tensor: one slice or a tuple of at most as many as there are
/// axes, each with steps of 1, as NumPy cuts them. `what` begins the messages. Throws TypeError,
/// ValueError.
SliceSpec slice_spec(nb::handle slices, const std::vector<std::int64_t>& shape,
                     const std::string& what);

/// The same in Python: a tuple of slices.
nb::object to_python(const TensorSlice& slice);

nb::tuple to_tuple(const std::vector<std::int64_t>& shape);

}  // namespace embertable::python
