#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "embertable/embedding.h"
#include "embertable/optimizer.h"
#include "embertable/shape.h"
#include "embertable/version.h"

namespace embertable {

/// Returns the name of an optimizer in load and retrieve operations: "Adagrad" of
/// LoadTPUEmbeddingAdagradParameters, "StochasticGradientDescent", "ADAM". Rules that the original
/// lacks are named in the same manner. Source: TF tpu_embedding_optimization_parameters_utils.cc,
/// GetOptimizationAlgorithmName.
EMBERTABLE_API std::string algorithm_name(const Optimizer& optimizer);

/// Selects the shard and the table that an operation moves. Tables are cut by the strategy's
/// sharding as if they had at least one row for each host: rows beyond the vocabulary are padding,
/// ignored when they are loaded and zeros when they are retrieved.
struct ShardOperation {
  std::string algorithm;        ///< the table's algorithm, from algorithm_name
  std::int64_t table_id = -1;   ///< position in table order; -1: the name says which table
  std::string table_name;       ///< name of the table; empty: the id says which
  std::int64_t num_shards = 0;  ///< >= 1
  std::int64_t shard_id = 0;    ///< 0 <= shard_id < num_shards
  std::string config;  ///< a serialized configuration, or empty; only the *_shard functions read it
  std::string device;  ///< device of the operation; only the *_shard functions read it
};

/// A caller-owned matrix, row-major. Borrowed for the call.
struct MatrixView {
  std::span<const float> values;
  Shape shape;  ///< rank 2
};

/// A matrix that owns its values.
struct Matrix {
  std::vector<float> values;  ///< row-major
  Shape shape;                ///< rank 2
};

/// Overwrites one shard of a table. tensors: the parameters, [rows, dim], then each slot in the
/// optimizer's order, of the same shape; [rows, 1] for a slot with one number per row. A pending
/// update is flushed first. Exclusive with steps; nothing has changed after an error.
///
/// Throws StateError if the engine is plain or not built; NotImplemented for a caller's own rule,
/// and where hosts are several processes, of which each has only rows of its own; ValueError naming
/// the value: unless there is exactly one of id and name, and a table of it; for another algorithm
/// than the table's, naming both; num_shards < 1, shard_id out of range, a shard without rows; a
/// tensor that is missing, surplus or of another shape. Source: TF
/// tpu_embedding_load_retrieve_ops.cc.
EMBERTABLE_API void load_parameters(Embedding& engine, const ShardOperation& operation,
                                    std::span<const MatrixView> tensors);

/// Returns the current values of the same tensors. Throws what load_parameters throws.
EMBERTABLE_API std::vector<Matrix> retrieve_parameters(const Embedding& engine,
                                                       const ShardOperation& operation);

/// One operation of `load_shard`.
struct LoadOperation {
  ShardOperation operation;
  std::vector<MatrixView> tensors;  ///< tensors that `load_parameters` takes
};

/// Loads all operations of one shard, each table once. Everything is checked before the first row
/// changes. Throws what load_parameters throws, ValueError for a table that is there twice,
/// operations that differ in num_shards, shard_id or device, non-empty configurations that differ,
/// or no operations; KeyError for a table that has no operation.
EMBERTABLE_API void load_shard(Embedding& engine, std::span<const LoadOperation> operations);

/// Returns the tensors by operation. Throws what load_shard throws.
EMBERTABLE_API std::vector<std::vector<Matrix>> retrieve_shard(
    const Embedding& engine, std::span<const ShardOperation> operations);

/// The parameters and slots of one shard of every table, in table order: for table t tensor 0 is
/// parameters[t], tensor i is auxiliary[i - 1][t].
template <class Tensor>
struct AllParameters {
  std::vector<Tensor> parameters;                ///< [table]
  std::array<std::vector<Tensor>, 7> auxiliary;  ///< [slot][table]
};

/// Loads all tables; a slot that a table lacks is an entry without elements. Throws what
/// load_parameters throws, and ValueError naming the list that has another number of entries than
/// there are tables.
EMBERTABLE_API void load_all_parameters(Embedding& engine, std::int64_t num_shards,
                                        std::int64_t shard_id,
                                        const AllParameters<MatrixView>& tensors);

/// Retrieves all tables; a slot that a table lacks is [0, 0]. Throws what load_parameters throws.
EMBERTABLE_API AllParameters<Matrix> retrieve_all_parameters(const Embedding& engine,
                                                             std::int64_t num_shards,
                                                             std::int64_t shard_id);

/// Copies of an accelerated engine's tables and slots, one for each host that owns rows; the
/// original calls them host variables. They are current right after `retrieve`, and the engine
/// takes them with `load`; with a plain engine, or before it is built, both do nothing. The engine
/// is borrowed and must not move. Source: TF tpu_embedding_v2.py, _load_variables,
/// _retrieve_variables.
class EMBERTABLE_API HostVariables {
 public:
  struct Variable {
    std::string name;  ///< name with the host's number: "video_0", "video/accumulators_0"
    Matrix matrix;
  };

  explicit HostVariables(Embedding& engine) noexcept : engine_(&engine) {}

  /// Copies the engine's rows. If the strategy was initialized anew and holds another engine with
  /// the same tables, copies that engine's rows. Throws StateError if it was initialized anew and
  /// holds no engine or one with different tables; NotImplemented where hosts are several
  /// processes.
  void retrieve();

  /// Loads the copies into the engine. Throws what `retrieve` throws, StateError if nothing was
  /// retrieved, ValueError for a variable of another shape.
  void load();

  /// Copies by table and "parameters" or slot, in the order of hosts; empty until `retrieve`.
  std::map<std::string, std::map<std::string, std::vector<Variable>>> variables;

 private:
  /// Returns one copy, or null if there is none.
  const Variable* find(const std::string& table, std::string_view slot, std::size_t place) const;

  Embedding* engine_;
};

/// Functions that a caller-owned checkpoint calls around a save and a restore. An unset function is
/// skipped. Source: TF tpu_embedding_v2.py, TPUEmbeddingSaveable.
struct SaveHook {
  std::string name = "TPUEmbedding_saveable";
  std::function<void()> load;      ///< brings restored values into the engine
  std::function<void()> retrieve;  ///< brings the engine's values to where they are saved

  void before_save() const {
    if (retrieve) retrieve();
  }
  void after_restore() const {
    if (load) load();
  }
};

}  // namespace embertable
