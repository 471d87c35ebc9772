#include "embertable/variables/variable_checkpoint.h"

#include <algorithm>
#include <memory>
#include <span>
#include <utility>

#include "checkpoint/writer.h"
#include "embertable/errors.h"
#include "embertable/variables/tensor_index.h"
#include "embertable/version.h"
#include "variable/assign_values.h"
#include "variable/assignable.h"
#include "variable/saved_variable.h"

namespace embertable {
namespace {

using checkpoint::Reader;
using checkpoint::TensorSource;
using checkpoint::WriteBytes;
using sharded::SavedTensor;

/// Bytes of rows that are made contiguous at once.
constexpr std::int64_t kChunkBytes = 1 << 20;

std::vector<std::int64_t> dims_of(const Shape& shape) {
  return {shape.dims().begin(), shape.dims().end()};
}

/// Passes the elements on in pieces, row-major; copies only what has gaps.
void write_elements(const Tensor& value, const WriteBytes& write) {
  if (value.size() == 0) return;
  if (value.contiguous()) return write(value.bytes());
  const std::int64_t rows = value.shape()[0];
  const std::int64_t row_bytes = value.size() / rows * byte_width(value.dtype());
  const std::int64_t at_once = std::max<std::int64_t>(1, kChunkBytes / row_bytes);
  for (std::int64_t first = 0; first < rows; first += at_once)
    write(index(value, {Slice{first, std::min(rows, first + at_once)}}).packed().bytes());
}

TensorSource source_of(const CheckpointVariable& variable) {
  return {std::string(sharded::stored_name(variable.dtype())), dims_of(variable.shape()),
          [&variable](const WriteBytes& write) {
            for (const Variable& component : variable.components())
              write_elements(component.value(), write);
          }};
}

/// Returns the manifest of a checkpoint of variables, without them.
checkpoint::Manifest manifest_of(std::int64_t step) {
  checkpoint::Manifest manifest;
  manifest.library = kVersion;
  manifest.numerics_version = kNumericsVersion;
  manifest.step = step;
  return manifest;
}

/// Returns why the saved variable does not fit ours; empty if it does.
std::string misfit(const std::string& name, const SavedTensor& saved,
                   const CheckpointVariable& variable) {
  const std::string_view ours = sharded::stored_name(variable.dtype());
  if (saved.stored_dtype() != ours)
    return "variable '" + name + "': expected dtype " + std::string(ours) +
           " does not equal original dtype " + saved.stored_dtype();
  if (!(saved.shape() == variable.shape()))
    return "variable '" + name + "': its shape " + variable.shape().to_string() +
           " does not match the shape stored in checkpoint, " + saved.shape().to_string();
  return "";
}

/// Opens the saved variables, in the order of ours. Throws before anything is read.
std::vector<SavedTensor> open_all(const Reader& reader, const CheckpointVariables& variables) {
  std::vector<SavedTensor> saved;
  std::string misfits;
  for (const auto& [name, variable] : variables) {
    check_restorable(name, variable);
    saved.emplace_back(reader, name);
    const std::string why = misfit(name, saved.back(), variable);
    if (!why.empty()) misfits += (misfits.empty() ? "" : "\n") + why;
  }
  if (!misfits.empty()) throw ValueError(reader.directory().string() + ": " + misfits);
  return saved;
}

/// Returns one new value for each component.
std::vector<Tensor> read_components(SavedTensor& saved, const CheckpointVariable& variable) {
  std::vector<Tensor> values;
  std::int64_t first = 0;  // element of the whole
  for (const Variable& component : variable.components()) {
    Tensor value(component.dtype(), component.shape());
    saved.read(first, value.mutable_bytes());
    first += value.size();
    values.push_back(std::move(value));
  }
  return values;
}

}  // namespace

CheckpointVariable::CheckpointVariable(Variable variable) {
  if (!variable) throw TypeError("checkpoint: a variable must be one, got none");
  if (!variable.has_value())
    throw ValueError("checkpoint: variable '" + variable.name() + "' has no value: a placeholder");
  shape_ = variable.shape();
  components_.push_back(std::move(variable));
}
CheckpointVariable::CheckpointVariable(const ShardedVariable& variable)
    : components_(variable.components()), shape_(variable.shape()) {}
CheckpointVariable::CheckpointVariable(const CreatedVariable& variable)
    : CheckpointVariable(variable.is_sharded() ? CheckpointVariable(variable.sharded())
                                               : CheckpointVariable(variable.whole())) {}

std::filesystem::path save_variables(const CheckpointRun& run, std::int64_t step,
                                     const CheckpointVariables& variables,
                                     const CallerState& state) {
  std::map<std::string, TensorSource> sources;
  for (const auto& [name, variable] : variables) sources.emplace(name, source_of(variable));
  checkpoint::Writer writer(checkpoint::open_run(run), manifest_of(step));
  writer.add_state(state, {}, std::move(sources));
  return writer.commit();
}

DenseTensor dense_tensor_of(const CheckpointVariable& variable) {
  DenseTensor tensor;
  const TensorSource source = source_of(variable);
  tensor.dtype = source.dtype;
  tensor.shape = source.shape;
  source.write([&](std::span<const std::byte> bytes) {
    tensor.bytes.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  });
  return tensor;
}

SavedState restore_variables(const std::filesystem::path& path,
                             const CheckpointVariables& variables) {
  const Reader reader(checkpoint::local_files(), path);
  std::vector<SavedTensor> saved = open_all(reader, variables);
  SavedState state{.step = reader.manifest().step, .caller = reader.caller_state(false)};
  std::vector<std::vector<Tensor>> values;
  std::size_t next = 0;
  for (const auto& entry : variables)
    values.push_back(read_components(saved[next++], entry.second));
  assign_values(variables, values);
  return state;
}

InitialValue saved_value(const std::filesystem::path& path, const std::string& name) {
  const auto reader = std::make_shared<Reader>(checkpoint::local_files(), path);
  const auto saved = std::make_shared<SavedTensor>(*reader, name);
  reader->close_tables();  // the variable has opened its own
  const auto dtype = sharded::dtype_of_stored(saved->stored_dtype());
  if (!dtype)
    throw ValueError("variable '" + name + "': no variable has the dtype " + saved->stored_dtype() +
                     " that " + reader->directory().string() + " has");
  return InitialValue::parts(saved->shape(), *dtype, [reader, saved](const VariablePart& part) {
    Tensor value(*sharded::dtype_of_stored(saved->stored_dtype()), part.shape);
    std::int64_t first = 0;
    if (part.shape.rank() > 0 && part.shape[0] > 0)
      first = part.offset[0] * (value.size() / part.shape[0]);
    saved->read(first, value.mutable_bytes());
    return value;
  });
}

}  // namespace embertable
