#include "embertable/tensorflow/sharded_bundle.h"

#include <algorithm>
#include <vector>

#include "embertable/errors.h"
#include "embertable/tensorflow/object_graph.h"
#include "variable/assign_values.h"
#include "variable/assignable.h"

namespace embertable {
namespace {

constexpr const char* kCounterName = "save_counter";

/// Returns the slice that a component is, whose rows begin at `first_row`, and moves `first_row` to
/// its end.
SliceSpec next_slice(const CheckpointVariable& variable, const Variable& component,
                     std::int64_t& first_row) {
  const auto full = variable.shape().dims();
  SliceSpec spec{{full.begin(), full.end()}, {}};
  for (const std::int64_t dim : component.shape().dims()) spec.slice.push_back({0, dim});
  if (spec.slice.empty()) return spec;
  spec.slice[0].start = first_row;
  first_row += spec.slice[0].length;
  return spec;
}

/// Copies rows of a tensor, row-major, until `out` is full.
void copy_packed_rows(const Tensor& tensor, std::int64_t first, std::span<std::byte> out) {
  if (tensor.shape().rank() == 0) {
    std::copy_n(tensor.data(), out.size(), out.begin());
    return;
  }
  const std::int64_t row_bytes = tensor.size() / tensor.shape()[0] * byte_width(tensor.dtype());
  const Tensor rows =
      tensor.view(first * tensor.byte_strides()[0],
                  tensor.shape().with_leading(std::ssize(out) / row_bytes), tensor.byte_strides());
  const Tensor packed = rows.packed();
  std::copy_n(packed.data(), out.size(), out.begin());
}

std::vector<ExpectedTensor> expected_of(const CheckpointVariables& variables) {
  std::vector<ExpectedTensor> expected;
  for (const auto& [key, variable] : variables) {
    const auto dims = variable.shape().dims();
    expected.push_back({key, to_bundle_dtype(variable.dtype()), {dims.begin(), dims.end()}});
  }
  return expected;
}

/// Returns one new value for each component.
std::vector<Tensor> read_all(const TensorBundleReader& reader, const std::string& key,
                             const CheckpointVariable& variable) {
  std::vector<Tensor> values;
  std::int64_t first_row = 0;
  for (const Variable& component : variable.components()) {
    const SliceSpec spec = next_slice(variable, component, first_row);
    Tensor& value = values.emplace_back(variable.dtype(), component.shape());
    if (value.size() > 0) reader.read(key, spec, value.mutable_bytes());
  }
  return values;
}

/// Returns variables of the root.
VariablesOfObjects of_root(const CheckpointVariables& variables) {
  VariablesOfObjects paths;
  for (const auto& [name, variable] : variables) paths.emplace(std::vector{name}, variable);
  return paths;
}

void refuse_root(const VariablesOfObjects& variables) {
  if (variables.contains({}))
    throw ValueError("a variable must be an attribute of an object, got the path of the root");
}

/// Returns variables by their keys, which differ unless one of them is the root.
CheckpointVariables by_key(const VariablesOfObjects& variables) {
  refuse_root(variables);
  CheckpointVariables keyed;
  for (const auto& [path, variable] : variables) keyed.emplace(variable_key(path), variable);
  return keyed;
}

}  // namespace

void add(TensorBundleWriter& writer, const std::string& key, const CheckpointVariable& variable) {
  const BundleDType dtype = to_bundle_dtype(variable.dtype());
  if (variable.shape().num_elements() == 0) {
    writer.add(key, dtype, variable.shape().dims(), {});
    return;
  }
  std::int64_t first_row = 0;
  for (const Variable& component : variable.components()) {
    const SliceSpec spec = next_slice(variable, component, first_row);
    const Tensor value = component.value();
    if (value.size() == 0) continue;
    writer.add_slice(key, dtype, spec, [&](std::int64_t first, std::span<std::byte> out) {
      copy_packed_rows(value, first, out);
    });
  }
}

void restore(const TensorBundleReader& reader, const CheckpointVariables& variables) {
  reader.require(expected_of(variables));
  for (const auto& [key, variable] : variables) check_restorable(key, variable);
  std::vector<std::vector<Tensor>> values;
  for (const auto& [key, variable] : variables) values.push_back(read_all(reader, key, variable));
  assign_values(variables, values);
}

void save_tensor_bundle(const std::filesystem::path& prefix, const CheckpointVariables& variables) {
  save_tensor_bundle(prefix, of_root(variables));
}

void save_tensor_bundle(const std::filesystem::path& prefix, const VariablesOfObjects& variables) {
  refuse_root(variables);
  if (variables.contains({kCounterName}))
    throw ValueError(
        "a variable must not be named 'save_counter', which the checkpoint has itself");
  TensorBundleWriter writer(prefix);
  ObjectGraph graph = ObjectGraph::of_root();
  for (const auto& [path, variable] : variables) {
    const std::string key = variable_key(path);
    std::int32_t object = 0;
    for (std::size_t i = 0; i + 1 < path.size(); ++i) object = graph.child(object, path[i]);
    graph.variable(object, path.back(), key);
    add(writer, key, variable);
  }
  const std::string counter = variable_key({kCounterName});
  graph.variable(0, kCounterName, counter);
  writer.add(counter, Tensor::scalar(std::int64_t{1}));
  const std::string bytes[] = {serialize(graph)};
  writer.add_strings(std::string(kObjectGraphKey), {}, bytes);
  writer.finish();
}

void restore_tensor_bundle(const std::filesystem::path& prefix,
                           const CheckpointVariables& variables) {
  restore_tensor_bundle(prefix, of_root(variables));
}

void restore_tensor_bundle(const std::filesystem::path& prefix,
                           const VariablesOfObjects& variables) {
  restore(TensorBundleReader(prefix), by_key(variables));
}

}  // namespace embertable
