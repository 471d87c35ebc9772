// Converts types, slices and shapes of tensor bundles to those of NumPy.
#include "python/src/formats/tensor_bundle.h"

#include "embertable/errors.h"
#include "python/src/arguments.h"
#include "python/src/text_caster.h"
#include "python/src/variables/tensors.h"

namespace embertable::python {
namespace {

constexpr BundleDType kNumbers[] = {
    BundleDType::kFloat32,   BundleDType::kFloat64,    BundleDType::kInt32,   BundleDType::kUInt8,
    BundleDType::kInt16,     BundleDType::kInt8,       BundleDType::kInt64,   BundleDType::kBool,
    BundleDType::kComplex64, BundleDType::kComplex128, BundleDType::kUInt16,  BundleDType::kFloat16,
    BundleDType::kUInt32,    BundleDType::kUInt64,     BundleDType::kBFloat16};

SliceExtent extent_of(nb::handle item, std::int64_t dim, const std::string& what) {
  if (!PySlice_Check(item.ptr()))
    throw TypeError(what + " must be a slice or a tuple of them, got " + type_text(item));
  Py_ssize_t start = 0, stop = 0, step = 0;
  if (PySlice_Unpack(item.ptr(), &start, &stop, &step) < 0) throw nb::python_error();
  if (step != 1) throw ValueError(what + " must have steps of 1, got " + std::to_string(step));
  const Py_ssize_t length = PySlice_AdjustIndices(dim, &start, &stop, step);
  return {start, length};
}

}  // namespace

nb::object numpy_dtype(BundleDType dtype, const std::string& what) {
  if (const auto known = to_dtype(dtype)) return numpy_dtype(*known);
  if (byte_width(dtype) == 0)
    throw NotImplemented(what + " is of " + to_string(dtype) + ", which is not read");
  return nb::module_::import_("numpy").attr("dtype")(to_string(dtype));
}

std::optional<BundleDType> bundle_dtype_of(const std::string& name) {
  for (const BundleDType dtype : kNumbers)
    if (to_string(dtype) == name) return dtype;
  return std::nullopt;
}

SliceSpec slice_spec(nb::handle slices, const std::vector<std::int64_t>& shape,
                     const std::string& what) {
  const nb::tuple items = PyTuple_Check(slices.ptr()) ? nb::borrow<nb::tuple>(slices)
                                                      : nb::make_tuple(nb::borrow(slices));
  if (items.size() > shape.size()) {
    throw ValueError(what + " must be at most " + std::to_string(shape.size()) + ", got " +
                     std::to_string(items.size()));
  }
  SliceSpec spec{shape, TensorSlice(shape.size())};
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    spec.slice[axis] = axis < items.size() ? extent_of(items[axis], shape[axis], what)
                                           : SliceExtent{0, shape[axis]};
  }
  return spec;
}

nb::object to_python(const TensorSlice& slice) {
  nb::list items;
  for (const SliceExtent& extent : slice) {
    const bool whole = extent.length == SliceExtent::kWhole;
    const nb::object start = whole ? nb::none() : nb::object(nb::int_(extent.start));
    const nb::object stop =
        whole ? nb::none() : nb::object(nb::int_(extent.start) + nb::int_(extent.length));
    items.append(nb::steal(PySlice_New(start.ptr(), stop.ptr(), nullptr)));
  }
  return nb::tuple(items);
}

nb::tuple to_tuple(const std::vector<std::int64_t>& shape) {
  nb::list dims;
  for (const std::int64_t dim : shape) dims.append(dim);
  return nb::tuple(dims);
}

}  // namespace embertable::python
