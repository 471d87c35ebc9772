#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "embertable/initializer.h"
#include "embertable/variables/partitioner.h"
#include "embertable/variables/sharded_variable.h"
#include "embertable/variables/tensor.h"
#include "embertable/version.h"

namespace embertable {

/// A block of rows of a variable that is to be filled, and its place in the whole: all of it if the
/// variable is made in one piece.
struct VariablePart {
  std::string name;                  ///< name of the whole variable
  Shape full_shape;                  ///< shape of the whole variable
  std::vector<std::int64_t> offset;  ///< by axis: (first row, 0, ...); empty for a scalar
  Shape shape;                       ///< shape of the block
};

/// The first value of a variable: a value, or a function that makes one. Functions are called by
/// the thread that makes the variable.
class EMBERTABLE_API InitialValue {
 public:
  using Whole = std::function<Tensor()>;
  using Part = std::function<Tensor(const VariablePart& part)>;

  /// Takes a value; components are slices of it.
  InitialValue(Tensor value);  // NOLINT: a value is an initial value

  /// Calls `make` once for all of the value, which is then sliced. Throws ValueError for an empty
  /// function.
  static InitialValue whole(Whole make);

  /// Calls `make` for one block after the other, in their order; each result has part.shape. The
  /// values of a row must not depend on the block that the row is in. Throws ValueError for an
  /// empty function, a shape that is not fully defined, or a value that is no dtype.
  static InitialValue parts(Shape full_shape, DType dtype, Part make);

  /// Fills float32 rows with the values that an engine's table of that name and seed has, whatever
  /// the blocks. Throws ValueError for rank 0, or if the initializer cannot fill that shape.
  static InitialValue of(Initializer initializer, Shape full_shape, std::uint64_t seed = 0);

  /// False for a value that exists already.
  bool is_function() const noexcept;

  /// Return what the value will have, unknown for a function of the whole, which has to be called.
  Shape shape() const;
  std::optional<DType> dtype() const;

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

/// A variable that was made, in one piece or as components, with the storage nodes that hold it.
struct CreatedVariable {
  std::variant<Variable, ShardedVariable> variable;
  std::vector<std::int32_t> nodes;  ///< node of the one piece, or of each component

  bool is_sharded() const noexcept { return std::holds_alternative<ShardedVariable>(variable); }

  /// Returns the one piece. Requires: !is_sharded().
  const Variable& whole() const { return std::get<Variable>(variable); }

  /// Returns the components. Requires: is_sharded().
  const ShardedVariable& sharded() const { return std::get<ShardedVariable>(variable); }
};

/// Options of a VariableCreator.
struct VariableCreatorOptions {
  /// Number of storage nodes, >= 1. Variables and components are placed on them by turns, each on
  /// the next node.
  std::int32_t storage_nodes = 1;

  /// Partitions each variable of rank 1 and more. Unset: variables are made in one piece.
  Partitioner variable_partitioner = {};
};

/// Options of one variable.
struct VariableOptions {
  /// Names the variable, or its components "<name>/part_<i>".
  std::string name = "Variable";

  /// Places the variable in one piece on this node, 0 <= node < storage_nodes, as when it belongs
  /// beside another one. The turns do not move on. Unset: by turns.
  std::optional<std::int32_t> colocate_with = {};
};

/// Makes variables in one piece or in blocks of rows, according to a partitioner. Use it from one
/// thread at a time. Source: TF distribute/parameter_server_strategy_v2.py, _create_variable.
class EMBERTABLE_API VariableCreator {
 public:
  /// Throws ValueError unless storage_nodes >= 1.
  explicit VariableCreator(VariableCreatorOptions options = {});

  /// Makes a variable by the partitioner's first count n. 1: one piece; more: min(n, rows)
  /// components of DIV's sizes named "<name>/part_<i>", in a container named `name`. The
  /// partitioner is never asked about scalars.
  ///
  /// Throws ValueError naming the variable_partitioner and its counts if there are none, the first
  /// is below 1 or another is not 1; ValueError naming the part for an initial value of another
  /// shape or dtype; ValueError for a node that does not exist; what functions throw. Nothing is
  /// placed then.
  CreatedVariable create(const InitialValue& initial_value, const VariableOptions& options = {});

 private:
  std::int64_t parts_of(const Shape& shape, DType dtype, const std::string& name) const;
  std::vector<std::int32_t> take_nodes(std::int64_t count);
  VariableCreatorOptions options_;
  std::int64_t next_node_ = 0;
};

/// Makes one component "<name>_<i>" for each of the first hosts that own rows by DIV: one per host,
/// or one per row if these are fewer. Throws ValueError unless `initial_value` is a function, of
/// rank 2, and hosts >= 1; what VariableCreator throws for the function's result. Source: TF
/// tpu_embedding_v2.py, make_sharded_variable_creator.
EMBERTABLE_API ShardedVariable create_on_hosts(const InitialValue& initial_value,
                                               std::int32_t hosts, const std::string& name);

}  // namespace embertable
