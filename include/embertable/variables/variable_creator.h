#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "embertable/export.h"
#include "embertable/initializer.h"
#include "embertable/variables/partitioner.h"
#include "embertable/variables/sharded_variable.h"
#include "embertable/variables/tensor.h"

namespace embertable {

/// A block of rows of a variable that is to be filled, and where it lies in the whole: all of it
/// where the variable is made in one piece.
struct VariablePart {
  std::string name;                  ///< of the whole variable
  Shape full_shape;                  ///< of the whole variable
  std::vector<std::int64_t> offset;  ///< by axis: (first row, 0, ...); empty for a scalar
  Shape shape;                       ///< of the block
};

/// What a variable starts with: a value, or a function that makes one. Functions are called by the
/// thread that makes the variable.
class EMBERTABLE_API InitialValue {
 public:
  using Whole = std::function<Tensor()>;
  using Part = std::function<Tensor(const VariablePart& part)>;

  /// This value; components are slices of it.
  InitialValue(Tensor value);  // NOLINT: a value is an initial value

  /// Makes all of the value, once, to be sliced. Throws ValueError for an empty function.
  static InitialValue whole(Whole make);

  /// Makes block after block, in their order, each of part.shape. What it gives for a row must not
  /// hang on the block that the row is in. Throws ValueError for an empty function or a shape that
  /// is not fully defined.
  static InitialValue parts(Shape full_shape, DType dtype, Part make);

  /// float32, row by row as an engine's table of that name and seed has it, whatever the blocks.
  /// Throws ValueError for rank 0, or where the initializer cannot fill that shape.
  static InitialValue of(Initializer initializer, Shape full_shape, std::uint64_t seed = 0);

  /// False for a value that was there already.
  bool is_function() const noexcept;

 private:
  friend class VariableCreator;
  friend EMBERTABLE_API ShardedVariable create_on_hosts(const InitialValue&, std::int32_t,
                                                        const std::string&);
  struct Parts {
    Shape full_shape;
    DType dtype;
    Part make;
  };
  using Source = std::variant<Tensor, Whole, Parts>;
  explicit InitialValue(Source source) : source_(std::move(source)) {}
  Parts as_parts() const;
  Source source_;
};

/// A variable as it was made: in one piece, or as components; with the storage nodes that hold
/// them.
struct CreatedVariable {
  std::variant<Variable, ShardedVariable> variable;
  std::vector<std::int32_t> nodes;  ///< of the one piece, or of each component

  bool is_sharded() const noexcept { return std::holds_alternative<ShardedVariable>(variable); }
  const Variable& whole() const { return std::get<Variable>(variable); }  ///< if not
  const ShardedVariable& sharded() const { return std::get<ShardedVariable>(variable); }
};

struct VariableCreatorOptions {
  /// Places for variables, by turns: the next node for each variable or component.
  std::int32_t storage_nodes = 1;

  /// Asked for each variable of rank 1 and more. Unset: variables are made in one piece.
  Partitioner variable_partitioner = {};
};

struct VariableOptions {
  std::string name = "Variable";

  /// Made on this node beside another variable: in one piece, and not by turns.
  std::optional<std::int32_t> colocate_with = {};
};

/// Makes variables in one piece or in blocks of rows, as a partitioner says. For one thread at a
/// time. Source: TF distribute/parameter_server_strategy_v2.py, _create_variable.
class EMBERTABLE_API VariableCreator {
 public:
  /// Throws ValueError unless storage_nodes >= 1.
  explicit VariableCreator(VariableCreatorOptions options = {});

  /// The partitioner's first count n says: 1, one piece; more, min(n, rows) components of DIV's
  /// sizes named "<name>/part_<i>", in a container named `name`. Scalars are never asked for.
  ///
  /// Throws ValueError naming the variable_partitioner and its counts if there are none, the first
  /// is below 1 or another is not 1; ValueError naming the part for an initial value of another
  /// shape or dtype; ValueError for a node that there is not; what functions throw. Nothing is
  /// placed then.
  CreatedVariable create(const InitialValue& initial_value, const VariableOptions& options = {});

 private:
  std::int64_t parts_of(const Shape& shape, DType dtype, const std::string& name) const;
  std::vector<std::int32_t> take_nodes(std::int64_t count);
  VariableCreatorOptions options_;
  std::int64_t next_node_ = 0;
};

/// One component "<name>_<i>" for each of the first hosts that own rows by DIV: as many as there
/// are hosts, or rows where these are fewer. Throws ValueError unless `initial_value` is a
/// function, of rank 2, and hosts >= 1; as VariableCreator for what the function gives.
/// Source: TF tpu_embedding_v2.py, make_sharded_variable_creator.
EMBERTABLE_API ShardedVariable create_on_hosts(const InitialValue& initial_value,
                                               std::int32_t hosts, const std::string& name);

}  // namespace embertable
