#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "embertable/executor.h"
#include "embertable/shape.h"
#include "embertable/variables/tensor.h"
#include "embertable/variables/tensor_index.h"
#include "embertable/version.h"

namespace embertable {

struct ShardedState;

/// The part of a whole that a component is: the slice under which it is saved. Source: TF
/// variables.py, Variable.SaveSliceInfo.
struct SaveSliceInfo {
  std::string full_name;                 ///< name of the whole
  Shape full_shape;                      ///< shape of the whole
  std::vector<std::int64_t> var_offset;  ///< where the part begins, by axis
  Shape var_shape;                       ///< shape of the part
};

/// Caller-owned rows that a variable wraps, such as an engine table's.
struct VariableMemory {
  void* data = nullptr;  ///< row i starts at data + i * row_stride; its elements are row-major
  DType dtype = DType::kFloat32;
  Shape shape;                        ///< rank >= 1
  std::int64_t row_stride = 0;        ///< bytes, at least the size of a row
  bool assignable = false;            ///< false: read-only; `data` is never written
  std::shared_ptr<const void> owner;  ///< kept alive by the variable and its tensors
};

/// A tensor that has a name and can be changed. A handle: copies are the same variable.
///
/// A tensor that `value` returned does not change when the variable is changed later: before memory
/// is changed that a tensor still shares, the variable's memory is copied. Caller-owned memory
/// (`over`) is written in place, and its tensors show the current contents, later changes included.
///
/// Threads: any number may read. Changing a variable excludes reading and changing the same one; it
/// does not exclude the use of tensors that were returned before, except those of caller-owned
/// memory. The properties that no change touches may be asked at any time: name, dtype, shape,
/// assignable, has_value.
class EMBERTABLE_API Variable {
 public:
  /// Makes an empty handle, which refers to no variable.
  Variable() = default;

  /// Makes an assignable variable with this value. It shares the value's memory unless that is
  /// wrapped or has gaps; then it copies.
  explicit Variable(Tensor value, std::string name = "Variable");

  /// Wraps caller-owned memory, which changes are written to in place. Only this variable may
  /// change it while a call reads it (see Tensor::wrap). Throws ValueError for rank 0, a stride
  /// less than a row, or memory that is not aligned for the elements, or null although there are
  /// some.
  static Variable over(VariableMemory memory, std::string name = "Variable");

  /// Makes a variable that has only a name, dtype and shape, and no value: `value` throws
  /// StateError, and it is not assignable.
  static Variable placeholder(DType dtype, const Shape& shape, std::string name);

  explicit operator bool() const noexcept { return state_ != nullptr; }

  // Everything below requires that the handle is not empty.

  const std::string& name() const noexcept;
  DType dtype() const noexcept;
  const Shape& shape() const noexcept;

  /// False if it wraps read-only memory.
  bool assignable() const noexcept;

  /// False for a placeholder.
  bool has_value() const noexcept;

  /// Returns a tensor that shares the variable's memory. Throws StateError for a placeholder.
  Tensor value() const;

  /// Overwrites the value. Throws ValueError for another dtype or shape, StateError unless
  /// assignable.
  void assign(const Tensor& value);

  /// Return and set the slice of the whole that this variable is. A sharded variable sets it for
  /// its components; unset: the variable stands alone.
  const std::optional<SaveSliceInfo>& save_slice_info() const noexcept;
  void set_save_slice_info(std::optional<SaveSliceInfo> info);

  /// True for the same variable, not for equal contents.
  friend bool operator==(const Variable&, const Variable&) = default;

 private:
  friend struct ShardedState;
  struct State;
  std::shared_ptr<State> state_;
};

/// Options of a ShardedVariable.
struct ShardedVariableOptions {
  /// Names the whole in messages and checkpoints.
  std::string name = "ShardedVariable";

  /// Makes sparse operations throw NotImplemented unless the components have the sizes of a
  /// division of the rows by their number, the larger ones first, as TensorFlow requires. False:
  /// any sizes do.
  bool require_div_sharding = false;

  /// Runs large sparse operations, whole reads, assignments and operators; lookups have an executor
  /// of their own. No result depends on it. Null: the calling thread.
  std::shared_ptr<Executor> executor = {};
};

/// Says what a scatter makes of an element x and a value v: x + v, x - v, x * v, x / v (integers
/// round toward zero), the lesser of both, the greater of both (NaN if one is NaN), or v.
enum class ScatterOperation : std::uint8_t { kAdd, kSub, kMul, kDiv, kMin, kMax, kUpdate };

/// One tensor kept as blocks of rows; each block is a variable, called a component. Components may
/// have any sizes, including none; rank >= 1. A handle: copies have the same components, and what
/// changes a component changes the whole. Reads return values (see Variable): a slice of step 1 or
/// another slice that lies in one component shares its memory, and still does not show later
/// changes, except over caller-owned memory.
///
/// A call that throws has changed nothing. Threads: the rules of Variable, for all components at
/// once. Source: TF distribute/sharded_variable.py.
class EMBERTABLE_API ShardedVariable {
 public:
  /// Gives each component its SaveSliceInfo. Throws TypeError for no components or one that is no
  /// variable; ValueError naming the component if dtypes differ, shapes differ after the first
  /// axis, a component has SaveSliceInfo already, is there twice, has rank 0, or is a placeholder.
  explicit ShardedVariable(std::vector<Variable> components, ShardedVariableOptions options = {});

  /// Shows a variable, which may be a component already, as a whole of this one component, for what
  /// only a whole can do. Its SaveSliceInfo stays as it is; messages speak of the variable.
  /// Requires: the handle is not empty. Throws ValueError for rank 0 and for a placeholder.
  static ShardedVariable of(const Variable& variable);

  const std::vector<Variable>& components() const noexcept;

  /// Returns the components; in an ExportScope of this thread, one placeholder of this name, dtype
  /// and shape.
  const std::vector<Variable>& variables() const noexcept;
  auto begin() const noexcept { return variables().begin(); }
  auto end() const noexcept { return variables().end(); }

  const std::string& name() const noexcept;
  DType dtype() const noexcept;
  const Shape& shape() const noexcept;  ///< [rows of all components, ...]

  /// Returns the executor that runs its operations; null: the calling thread.
  const std::shared_ptr<Executor>& executor() const noexcept;

  /// Returns the first row of each component, [components + 1]: component i has the rows
  /// offsets()[i] <= row < offsets()[i + 1].
  std::span<const std::int64_t> offsets() const noexcept;

  /// True if every component is assignable.
  bool assignable() const noexcept;

  /// True if the components have the sizes of a division (ShardedVariableOptions).
  bool div_sharded() const noexcept;

  /// True if components have equal shapes and dtypes, one by one.
  bool same_structure(const ShardedVariable& other) const;

  /// Returns all rows. A copy, unless one component has them all.
  Tensor value() const;

  /// Returns value(). Throws ValueError unless `dtype` is this dtype, and NotImplemented if the
  /// caller asks for a reference, through which rows could change.
  Tensor value(DType dtype, bool as_reference = false) const;

  /// Returns value()[parts], reading only the components that are needed. Throws what `index`
  /// throws, naming the variable, and the component if the part for axis 0 lies in one.
  Tensor at(std::span<const Index> parts) const;
  Tensor at(std::initializer_list<Index> parts) const {
    return at(std::span<const Index>(parts.begin(), parts.size()));
  }
  Tensor operator[](const Index& part) const { return at(std::span<const Index>(&part, 1)); }

  /// Gathers rows: row i of the result is row indices[i] of this. indices: [n], int32 or int64.
  /// Throws TypeError for another dtype, ValueError for another rank, IndexError naming the first
  /// index that is not in [0, rows), its place and the nearest component; NotImplemented by
  /// require_div_sharding.
  Tensor sparse_read(const Tensor& indices) const;

  /// Gathers rows into caller-owned memory: [n, row], row-major, of this dtype. Throws ValueError
  /// for another number of bytes.
  void sparse_read(const Tensor& indices, std::span<std::byte> out) const;

  /// Sets row indices[i] to row indices[i] (op) values[i] for i rising, so that the last of several
  /// values for one row stays in an update. indices: like in sparse_read. values: [n, ...], of this
  /// dtype. Throws what sparse_read throws, ValueError for values of another dtype or shape, for
  /// bool unless it is an update, for integers divided by zero, and for a value that is no
  /// operation; StateError naming a component that is not assignable.
  ShardedVariable& scatter(ScatterOperation op, const Tensor& indices, const Tensor& values);

  /// Scatter by the operation that they are named after; batch_scatter_update equals
  /// scatter_update. They throw what `scatter` throws.
  ShardedVariable& scatter_add(const Tensor& indices, const Tensor& values);
  ShardedVariable& scatter_sub(const Tensor& indices, const Tensor& values);
  ShardedVariable& scatter_mul(const Tensor& indices, const Tensor& values);
  ShardedVariable& scatter_div(const Tensor& indices, const Tensor& values);
  ShardedVariable& scatter_min(const Tensor& indices, const Tensor& values);
  ShardedVariable& scatter_max(const Tensor& indices, const Tensor& values);
  ShardedVariable& scatter_update(const Tensor& indices, const Tensor& values);
  ShardedVariable& batch_scatter_update(const Tensor& indices, const Tensor& values);

  /// Change all rows by `value`, which has this shape and dtype. They throw ValueError otherwise,
  /// and if bool is added or subtracted; StateError naming a component that is not assignable.
  ShardedVariable& assign(const Tensor& value);
  ShardedVariable& assign_add(const Tensor& value);
  ShardedVariable& assign_sub(const Tensor& value);

 private:
  struct OneVariable {};
  ShardedVariable(OneVariable, const Variable& variable);

  std::shared_ptr<ShardedState> state_;
};

}  // namespace embertable
