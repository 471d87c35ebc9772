#include "embertable/sharded_bundle.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "embertable/errors.h"
#include "embertable/object_graph.h"

namespace embertable {
namespace {

constexpr const char* kCounterName = "save_counter";

/// The slice that component `i` is.
SliceSpec slice_of(const ShardedVariable& variable, std::size_t i) {
  const auto full = variable.shape().dims();
  SliceSpec spec{{full.begin(), full.end()}, {}};
  for (const std::int64_t dim : variable.variables()[i].shape().dims())
    spec.slice.push_back({0, dim});
  spec.slice[0].start = variable.offsets()[i];
  return spec;
}

/// Rows of a tensor, row-major, as many as fill `out`.
void copy_packed_rows(const Tensor& tensor, std::int64_t first, std::span<std::byte> out) {
  const std::int64_t row_bytes = tensor.size() / tensor.shape()[0] * byte_width(tensor.dtype());
  const Tensor rows =
      tensor.view(first * tensor.byte_strides()[0],
                  tensor.shape().with_leading(std::ssize(out) / row_bytes), tensor.byte_strides());
  const Tensor packed = rows.packed();
  std::copy_n(packed.data(), out.size(), out.begin());
}

std::vector<ExpectedTensor> expected_of(const VariablesByKey& variables) {
  std::vector<ExpectedTensor> expected;
  for (const auto& [key, variable] : variables) {
    const auto dims = variable.shape().dims();
    expected.push_back({key, to_bundle_dtype(variable.dtype()), {dims.begin(), dims.end()}});
  }
  return expected;
}

void check_all_assignable(const VariablesByKey& variables) {
  for (const auto& [key, variable] : variables) {
    if (!variable.assignable())
      throw StateError(
          fmt::format("restore: '{}' must be assignable, got one that is only read", key));
  }
}

VariablesByKey by_key(const std::map<std::string, ShardedVariable>& variables) {
  VariablesByKey keyed;
  for (const auto& [name, variable] : variables) keyed.emplace(variable_key({name}), variable);
  return keyed;
}

}  // namespace

void add(TensorBundleWriter& writer, const std::string& key, const ShardedVariable& variable) {
  const BundleDType dtype = to_bundle_dtype(variable.dtype());
  if (variable.shape().num_elements() == 0) {
    writer.add(key, dtype, variable.shape().dims(), {});
    return;
  }
  for (std::size_t i = 0; i < variable.variables().size(); ++i) {
    const Tensor value = variable.variables()[i].value();
    if (value.size() == 0) continue;
    writer.add_slice(
        key, dtype, slice_of(variable, i),
        [&](std::int64_t first, std::span<std::byte> out) { copy_packed_rows(value, first, out); });
  }
}

void restore(const TensorBundleReader& reader, const VariablesByKey& variables) {
  reader.require(expected_of(variables));
  check_all_assignable(variables);
  for (const auto& [key, variable] : variables) {
    std::vector<Tensor> values;
    for (std::size_t i = 0; i < variable.variables().size(); ++i) {
      Tensor& value = values.emplace_back(variable.dtype(), variable.variables()[i].shape());
      if (value.size() > 0) reader.read(key, slice_of(variable, i), value.mutable_bytes());
    }
    for (std::size_t i = 0; i < values.size(); ++i) {
      Variable component = variable.variables()[i];
      component.assign(values[i]);
    }
  }
}

void save_tensor_bundle(const std::filesystem::path& prefix,
                        const std::map<std::string, ShardedVariable>& variables) {
  if (variables.contains(kCounterName))
    throw ValueError(
        "a variable must not be named 'save_counter', which the checkpoint has itself");
  TensorBundleWriter writer(prefix);
  ObjectGraph graph = ObjectGraph::of_root();
  for (const auto& [name, variable] : variables) {
    const std::string key = variable_key({name});
    const std::int32_t node = graph.variable(0, name, key);
    graph.nodes[static_cast<std::size_t>(node)].attributes[0].full_name = variable.name();
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
                           const std::map<std::string, ShardedVariable>& variables) {
  restore(TensorBundleReader(prefix), by_key(variables));
}

}  // namespace embertable
