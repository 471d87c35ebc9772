#include "python/src/dlpack/bags.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

namespace embertable::python {
namespace {

using dlpack::ExchangeApi;

/// The tensors of one feature.
struct Feature {
  IntegerSpan ids;
  std::int64_t rows = 0;    ///< first dim of the ids
  std::int64_t length = 0;  ///< second dim of 2-D ids, else 0
  int rank = 0;             ///< rank of the ids
  IntegerSpan offsets;
  bool has_offsets = false;
  FloatSpan weights;  ///< not given: none
};

/// Returns the number of items of a tuple or a list, -1 for anything else.
std::int64_t length_of(nb::handle value) {
  if (PyTuple_CheckExact(value.ptr())) return PyTuple_Size(value.ptr());
  return PyList_CheckExact(value.ptr()) ? PyList_Size(value.ptr()) : -1;
}

/// Returns one of the items. Requires: 0 <= i < length_of(sequence).
nb::handle item_of(nb::handle sequence, std::int64_t i) {
  return PyTuple_CheckExact(sequence.ptr()) ? PyTuple_GetItem(sequence.ptr(), i)
                                            : PyList_GetItem(sequence.ptr(), i);
}

IntegerSpan integers(const dlpack::Tensor& tensor) {
  const auto size = static_cast<std::size_t>(dlpack::elements(tensor));
  if (tensor.type.bits == 64) return std::span(static_cast<const std::int64_t*>(tensor.data), size);
  return std::span(static_cast<const std::int32_t*>(tensor.data), size);
}

bool is_true(nb::handle object, PyObject* name) {
  const nb::object value = nb::steal(PyObject_GetAttr(object.ptr(), name));
  if (!value.is_valid()) PyErr_Clear();
  return !value.is_valid() || !value.is(nb::bool_(false));
}

/// Reads the tensors of one batch, all of one type.
class Reading {
 public:
  explicit Reading(Bags& bags) : bags_(bags) {}

  /// False for what takes the slower road.
  bool read(nb::handle value, BagForm form, Feature& feature) {
    std::array<nb::handle, 3> parts{value, nb::handle(), nb::handle()};
    if (const std::int64_t length = length_of(value); length >= 0) {
      if (form == BagForm::kSingles || length == 0 || length > 3) return false;
      for (std::int64_t i = 0; i < length; ++i) {
        const nb::handle item = item_of(value, i);
        parts[static_cast<std::size_t>(i)] = item.is_none() ? nb::handle() : item;
      }
    }
    if (!read_ids(parts[0], feature)) return false;
    if (parts[1].is_valid() && !read_offsets(parts[1], feature)) return false;
    if (parts[2].is_valid() && !read_weights(parts[2], feature)) return false;
    return has_form(feature, form);
  }

 private:
  /// Describes a tensor in C order, which the batch keeps.
  std::optional<dlpack::Tensor> tensor_of(nb::handle object) {
    const ExchangeApi* const api = object.is_valid() ? dlpack::api_of(object) : nullptr;
    if (!api || (bags_.api && bags_.api != api)) return std::nullopt;
    static bool failed = false;  // asking a nested tensor takes long, and fails
    static PyObject* const nested = PyUnicode_InternFromString("is_nested");
    if (failed && is_true(object, nested)) return std::nullopt;
    std::optional<dlpack::Tensor> tensor = dlpack::view_of(object, *api);
    failed = failed || !tensor;
    if (!tensor || !dlpack::is_in_c_order(*tensor)) return std::nullopt;
    bags_.api = api;
    bags_.tensors.push_back(nb::borrow(object));
    return tensor;
  }

  bool read_ids(nb::handle object, Feature& feature) {
    const auto tensor = tensor_of(object);
    if (!tensor || !dlpack::is_integers(*tensor)) return false;
    feature.ids = integers(*tensor);
    feature.rank = tensor->rank;
    feature.rows = tensor->rank > 0 ? tensor->shape[0] : 1;
    feature.length = tensor->rank == 2 ? tensor->shape[1] : 0;
    return true;
  }

  bool read_offsets(nb::handle object, Feature& feature) {
    const auto tensor = tensor_of(object);
    if (!tensor || !dlpack::is_integers(*tensor) || tensor->rank != 1) return false;
    feature.offsets = integers(*tensor);
    feature.has_offsets = true;
    return true;
  }

  /// Reads weights of the shape of the ids.
  bool read_weights(nb::handle object, Feature& feature) {
    const auto tensor = tensor_of(object);
    if (!tensor || !dlpack::is_floats(*tensor) || tensor->type.bits != 32) return false;
    if (tensor->rank != feature.rank || feature.rank == 0) return false;
    if (tensor->shape[0] != feature.rows) return false;
    if (feature.rank == 2 && tensor->shape[1] != feature.length) return false;
    static const float nothing = 0;  // weights without elements may have no address
    feature.weights = std::span(tensor->data ? static_cast<const float*>(tensor->data) : &nothing,
                                static_cast<std::size_t>(dlpack::elements(*tensor)));
    static PyObject* const requires_grad = PyUnicode_InternFromString("requires_grad");
    return !is_true(object, requires_grad) && !dlpack::is_negated(object);
  }

  static bool has_form(const Feature& feature, BagForm form) {
    if (form == BagForm::kSingles) return true;
    if (feature.rank == 2) return !feature.has_offsets;
    return feature.rank == 1 && (feature.has_offsets || form == BagForm::kBagsOrSingles);
  }

  Bags& bags_;
};

/// Returns the number of row splits to be made of a feature.
std::size_t splits_of(const Feature& feature, BagForm form) {
  if (form == BagForm::kSingles) return 0;
  if (feature.has_offsets)
    return form == BagForm::kBagsWithLastOffset
               ? 0
               : static_cast<std::size_t>(feature.offsets.size()) + 1;
  // Dense ids, which bags of one id are, have no weights.
  const bool are_dense = feature.length == 1 && !feature.weights.is_given();
  return feature.rank == 2 && !are_dense ? static_cast<std::size_t>(feature.rows) + 1 : 0;
}

/// Writes the row splits of a feature that has some to be made.
void fill(std::span<std::int64_t> splits, const Feature& feature) {
  if (!feature.has_offsets) {
    for (std::size_t i = 0; i < splits.size(); ++i)
      splits[i] = static_cast<std::int64_t>(i) * feature.length;
    return;
  }
  const IntegerSpan& offsets = feature.offsets;
  if (offsets.is_int64())
    std::copy_n(static_cast<const std::int64_t*>(offsets.data()), offsets.size(), splits.begin());
  else
    std::copy_n(static_cast<const std::int32_t*>(offsets.data()), offsets.size(), splits.begin());
  splits.back() = feature.ids.size();
}

/// Makes the batch of what has been read.
void assemble(Bags& bags, std::span<const Feature> features, BagForm form,
              const Structure& expected) {
  std::size_t count = 0;
  bool weighted = false;
  for (const Feature& feature : features) {
    count += splits_of(feature, form);
    weighted = weighted || feature.weights.is_given();
  }
  bags.splits.resize(count);
  std::span<std::int64_t> free = bags.splits;
  std::vector<FeatureIds> ids;
  std::vector<FeatureWeights> weights(weighted ? features.size() : 0);
  ids.reserve(features.size());
  for (const Feature& feature : features) {
    const auto splits = free.first(splits_of(feature, form));
    free = free.subspan(splits.size());
    const bool ragged = feature.has_offsets || !splits.empty();
    if (!splits.empty()) fill(splits, feature);
    if (ragged) {
      ids.emplace_back(RaggedIds{
          .row_splits = splits.empty() ? feature.offsets : std::span<const std::int64_t>(splits),
          .values = feature.ids});
    } else {
      ids.emplace_back(DenseIds{feature.ids, Shape{feature.ids.size()}});
    }
    if (feature.weights.is_given()) {
      FeatureWeights& own = weights[ids.size() - 1];
      if (ragged)
        own = RaggedWeights{feature.weights};
      else
        own = DenseWeights{feature.weights};
    }
  }
  bags.batch.features = Nested<FeatureIds>(expected, std::move(ids));
  if (weighted) bags.batch.weights = Nested<FeatureWeights>(expected, std::move(weights));
}

}  // namespace

std::optional<Bags> read_bags(nb::handle values, BagForm form, const Structure& expected) {
  const std::int64_t count = length_of(values);
  if (count != expected.num_leaves()) return std::nullopt;
  Bags bags{Batch{FeatureIds()}};
  std::vector<Feature> features(static_cast<std::size_t>(count));
  bags.tensors.reserve(2 * features.size());
  Reading reading(bags);
  for (std::int64_t i = 0; i < count; ++i)
    if (!reading.read(item_of(values, i), form, features[static_cast<std::size_t>(i)]))
      return std::nullopt;
  assemble(bags, features, form, expected);
  return bags;
}

}  // namespace embertable::python
