#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "embertable/executor.h"
#include "embertable/export.h"
#include "embertable/shape.h"
#include "embertable/variables/tensor.h"
#include "embertable/variables/tensor_index.h"

namespace embertable {

/// Which part of a whole a component is: the slice under which it is saved. Source: TF
/// variables.py, Variable.SaveSliceInfo.
struct SaveSliceInfo {
  std::string full_name;
  Shape full_shape;
  std::vector<std::int64_t> var_offset;  ///< by axis: where the part begins
  Shape var_shape;
};

/// Rows of somebody else's that a variable stands over, such as those of an engine's table.
struct VariableMemory {
  void* data = nullptr;  ///< row i starts at data + i * row_stride; its elements are row-major
  DType dtype = DType::kFloat32;
  Shape shape;                        ///< rank >= 1
  std::int64_t row_stride = 0;        ///< bytes, at least those of a row
  bool assignable = false;            ///< false: read-only; `data` is never written
  std::shared_ptr<const void> owner;  ///< kept as long as the variable or a tensor of it
};

/// A tensor that has a name and can be changed: a handle, copies of which are the same variable.
///
/// What `value` hands out stays as it is when the variable is changed later: a change of memory
/// that a tensor still shares takes a copy of the variable's memory first. Where a variable stands
/// over memory of somebody else (`over`), it is written in place, and tensors of it show what is
/// there now, later changes included.
///
/// Threads: any number may read. Changing excludes reading and changing of the same variable; it
/// does not exclude the use of tensors that were handed out, memory of somebody else aside. What no
/// change touches may be asked at any time: name, dtype, shape, assignable, has_value.
class EMBERTABLE_API Variable {
 public:
  /// No variable.
  Variable() = default;

  explicit Variable(Tensor value, std::string name = "Variable");

  /// Throws ValueError for rank 0, a stride less than a row, or memory that is not aligned for the
  /// elements.
  static Variable over(VariableMemory memory, std::string name = "Variable");

  /// Stands for a variable where only its name, dtype and shape are wanted. It has no value:
  /// `value` throws StateError, and it is not assignable.
  static Variable placeholder(DType dtype, const Shape& shape, std::string name);

  explicit operator bool() const noexcept { return state_ != nullptr; }

  // Everything below: only of a variable.

  const std::string& name() const noexcept;
  DType dtype() const noexcept;
  const Shape& shape() const noexcept;

  /// False if it stands over memory that is only read.
  bool assignable() const noexcept;

  /// False for a placeholder.
  bool has_value() const noexcept;

  /// Shares the variable's memory. Throws StateError for a placeholder.
  Tensor value() const;

  /// Throws ValueError for another dtype or shape, StateError unless assignable.
  void assign(const Tensor& value);

  /// Set by the sharded variable that it is a component of.
  const std::optional<SaveSliceInfo>& save_slice_info() const noexcept;
  void set_save_slice_info(std::optional<SaveSliceInfo> info);

  /// The same variable, not an equal one.
  friend bool operator==(const Variable&, const Variable&) = default;

 private:
  friend class ShardedVariable;
  struct State;
  std::shared_ptr<State> state_;
};

struct ShardedVariableOptions {
  std::string name = "ShardedVariable";

  /// Sparse operations throw NotImplemented unless the components have the sizes of a division of
  /// the rows by as many shards, the larger ones first, as in TensorFlow. False: any sizes do.
  bool require_div_sharding = false;

  /// Runs sparse operations, whole reads, assignments and operators where they have much to do;
  /// lookups have one of their own. No result depends on it. Null: the calling thread.
  std::shared_ptr<Executor> executor = {};
};

/// What a scatter makes of an element x and a value v: x + v, x - v, x * v, x / v (integers toward
/// zero), the lesser, the greater (NaN if one is), v.
enum class ScatterOperation : std::uint8_t { kAdd, kSub, kMul, kDiv, kMin, kMax, kUpdate };

/// One tensor kept as blocks of rows, each of them a variable: its components. Any sizes, empty
/// ones too; rank >= 1. A handle: copies have the same components, and what changes a component
/// changes the whole. What is read are values (see Variable): a slice of step 1 or another that
/// lies in one component shares its memory, and still does not show later changes, except over
/// memory of somebody else.
///
/// A call that throws has changed nothing. Threads: as Variable, of all components at once.
/// Source: TF distribute/sharded_variable.py.
class EMBERTABLE_API ShardedVariable {
 public:
  /// Gives each component its SaveSliceInfo. Throws TypeError for no components or one that is no
  /// variable; ValueError naming the component if dtypes differ, shapes differ after the first
  /// axis, a component has SaveSliceInfo already, is there twice, has rank 0, or is a placeholder.
  explicit ShardedVariable(std::vector<Variable> components, ShardedVariableOptions options = {});

  const std::vector<Variable>& components() const noexcept;

  /// The components; in an ExportScope of this thread, one placeholder of this name, dtype and
  /// shape.
  const std::vector<Variable>& variables() const noexcept;
  auto begin() const noexcept { return variables().begin(); }
  auto end() const noexcept { return variables().end(); }

  const std::string& name() const noexcept;
  DType dtype() const noexcept;
  const Shape& shape() const noexcept;  ///< [rows of all components, ...]

  /// What runs its operations; null: the calling thread.
  const std::shared_ptr<Executor>& executor() const noexcept;

  /// [components + 1]: component i has the rows offsets()[i] <= row < offsets()[i + 1].
  std::span<const std::int64_t> offsets() const noexcept;

  /// True if every component is.
  bool assignable() const noexcept;

  /// True if the components have the sizes of a division (ShardedVariableOptions).
  bool div_sharded() const noexcept;

  /// True if components have equal shapes and dtypes, one by one.
  bool same_structure(const ShardedVariable& other) const;

  /// All rows. A copy, unless one component has them all.
  Tensor value() const;

  /// `value` for someone who wants this dtype, or a reference to change. Throws ValueError for
  /// another dtype than this one's, NotImplemented for a reference.
  Tensor value(DType dtype, bool as_reference = false) const;

  /// value()[parts], reading only the components that are asked for. Throws as `index` does, naming
  /// the variable, and the component where what axis 0 has names one.
  Tensor at(std::span<const Index> parts) const;
  Tensor at(std::initializer_list<Index> parts) const {
    return at(std::span<const Index>(parts.begin(), parts.size()));
  }
  Tensor operator[](const Index& part) const { return at(std::span<const Index>(&part, 1)); }

  /// Row i of the result is row indices[i] of this. indices: [n], int32 or int64. Throws TypeError
  /// for another dtype, ValueError for another rank, IndexError naming the first index that is not
  /// in [0, rows), its place and the component that is nearest; NotImplemented by
  /// require_div_sharding.
  Tensor sparse_read(const Tensor& indices) const;

  /// The same into the caller's memory: [n, row], row-major, of this dtype. Throws ValueError for
  /// another number of bytes.
  void sparse_read(const Tensor& indices, std::span<std::byte> out) const;

  /// For i rising, row indices[i] becomes row indices[i] (op) values[i], so that of several values
  /// for one row the last one stays in an update. indices: as in sparse_read. values: [n, ...], of
  /// this dtype. Throws as sparse_read, ValueError for values of another dtype or shape, for bool
  /// unless it is an update, and for integers divided by zero; StateError naming a component that
  /// is not assignable.
  ShardedVariable& scatter(ScatterOperation op, const Tensor& indices, const Tensor& values);
  ShardedVariable& scatter_add(const Tensor& indices, const Tensor& values);
  ShardedVariable& scatter_sub(const Tensor& indices, const Tensor& values);
  ShardedVariable& scatter_mul(const Tensor& indices, const Tensor& values);
  ShardedVariable& scatter_div(const Tensor& indices, const Tensor& values);
  ShardedVariable& scatter_min(const Tensor& indices, const Tensor& values);
  ShardedVariable& scatter_max(const Tensor& indices, const Tensor& values);
  ShardedVariable& scatter_update(const Tensor& indices, const Tensor& values);
  ShardedVariable& batch_scatter_update(const Tensor& indices, const Tensor& values);

  /// value: of this shape and dtype, else ValueError; also where bool is added or subtracted.
  /// StateError naming a component that is not assignable.
  ShardedVariable& assign(const Tensor& value);
  ShardedVariable& assign_add(const Tensor& value);
  ShardedVariable& assign_sub(const Tensor& value);

 private:
  struct State;

  /// Packed. Throws as sparse_read.
  Tensor checked_indices(const char* operation, const Tensor& indices) const;
  void read_checked(const Tensor& indices, std::span<std::byte> out) const;
  void assign_by(ScatterOperation operation, const char* what, const Tensor& value);

  std::shared_ptr<State> state_;
};

}  // namespace embertable
