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
#include "embertable/export.h"
#include "embertable/optimizer.h"
#include "embertable/shape.h"

namespace embertable {

/// The name that load and retrieve operations have for what an optimizer does: "Adagrad" of
/// LoadTPUEmbeddingAdagradParameters, "StochasticGradientDescent", "ADAM". Rules that the original
/// lacks are named in the same manner. Source: TF tpu_embedding_optimization_parameters_utils.cc,
/// GetOptimizationAlgorithmName.
EMBERTABLE_API std::string algorithm_name(const Optimizer& optimizer);

/// Which shard of which table an operation moves. Tables are cut by the strategy's sharding as if
/// they had a row for each host at least: rows beyond the vocabulary are padding, ignored when they
/// are loaded and zeros when they are retrieved.
struct ShardOperation {
  std::string algorithm;  ///< of the table, as algorithm_name gives it
  std::int64_t table_id = -1;
  std::string table_name;  ///< instead of the id
  std::int64_t num_shards = 0;
  std::int64_t shard_id = 0;
  std::string config;  ///< a serialized configuration, or empty: looked at by the *_shard functions
  std::string device;  ///< that runs the operation: looked at by the *_shard functions
};

/// A matrix of the caller's, row-major. Borrowed for the call.
struct MatrixView {
  std::span<const float> values;
  Shape shape;  ///< rank 2
};

struct Matrix {
  std::vector<float> values;  ///< row-major
  Shape shape;                ///< rank 2
};

/// Overwrites one shard of a table. tensors: the parameters, [rows, dim], then each slot in the
/// optimizer's order, of the same shape; [rows, 1] for a slot with one number per row. A pending
/// update is flushed first. Exclusive with steps; nothing has changed after an error.
///
/// Throws StateError if the engine is plain or not built; NotImplemented for a caller's own rule;
/// ValueError naming the value: unless there is exactly one of id and name, and a table of it; for
/// another algorithm than the table's, naming both; num_shards < 1, shard_id out of range, a shard
/// without rows; a tensor that is missing, surplus or of another shape. Source: TF
/// tpu_embedding_load_retrieve_ops.cc.
EMBERTABLE_API void load_parameters(Embedding& engine, const ShardOperation& operation,
                                    std::span<const MatrixView> tensors);

/// The same tensors, as they are now. Throws as load_parameters.
EMBERTABLE_API std::vector<Matrix> retrieve_parameters(const Embedding& engine,
                                                       const ShardOperation& operation);

struct LoadOperation {
  ShardOperation operation;
  std::vector<MatrixView> tensors;
};

/// All operations of one shard, each table once. Everything is checked before the first row
/// changes. Throws as load_parameters, and ValueError for a table that is there twice, operations
/// that differ in num_shards, shard_id or device, non-empty configurations that differ, or none;
/// KeyError for a table that is not there.
EMBERTABLE_API void load_shard(Embedding& engine, std::span<const LoadOperation> operations);

/// By operation. Throws as load_shard.
EMBERTABLE_API std::vector<std::vector<Matrix>> retrieve_shard(
    const Embedding& engine, std::span<const ShardOperation> operations);

/// The parameters and slots of one shard of every table, in table order: of table t tensor 0 is
/// parameters[t], tensor i is auxiliary[i - 1][t].
template <class Tensor>
struct AllParameters {
  std::vector<Tensor> parameters;
  std::array<std::vector<Tensor>, 7> auxiliary;
};

/// A slot that a table lacks is an entry without elements. Throws as load_parameters, and
/// ValueError naming the list that has another number of entries than there are tables.
EMBERTABLE_API void load_all_parameters(Embedding& engine, std::int64_t num_shards,
                                        std::int64_t shard_id,
                                        const AllParameters<MatrixView>& tensors);

/// A slot that a table lacks is [0, 0]. Throws as load_parameters.
EMBERTABLE_API AllParameters<Matrix> retrieve_all_parameters(const Embedding& engine,
                                                             std::int64_t num_shards,
                                                             std::int64_t shard_id);

/// What the original calls host variables: copies of an accelerated engine's tables and slots, one
/// for each host that owns rows. They are current right after `retrieve`, and the engine takes them
/// with `load`; with a plain engine, or before it is built, both do nothing. The engine is borrowed
/// and must not move. Source: TF tpu_embedding_v2.py, _load_variables, _retrieve_variables.
class EMBERTABLE_API HostVariables {
 public:
  struct Variable {
    std::string name;  ///< "video_0", "video/accumulators_0": with the host's number
    Matrix matrix;
  };

  explicit HostVariables(Embedding& engine) noexcept : engine_(&engine) {}

  /// Throws StateError if the strategy was initialized anew, and holds no engine now or one whose
  /// tables are not alike. Of one whose tables are, these are copied.
  void retrieve();

  /// Throws StateError as `retrieve`, or if nothing was retrieved; ValueError for a variable of
  /// another shape.
  void load();

  /// By table and "parameters" or slot, in the order of hosts; empty until `retrieve`.
  std::map<std::string, std::map<std::string, std::vector<Variable>>> variables;

 private:
  /// Null: it is not there.
  const Variable* find(const std::string& table, std::string_view slot, std::size_t place) const;

  Embedding* engine_;
};

/// What a checkpoint of somebody else's calls around a save and a restore. A function that is not
/// set is skipped. Source: TF tpu_embedding_v2.py, TPUEmbeddingSaveable.
struct SaveHook {
  std::string name = "TPUEmbedding_saveable";
  std::function<void()> load;
  std::function<void()> retrieve;

  void before_save() const {
    if (retrieve) retrieve();
  }
  void after_restore() const {
    if (load) load();
  }
};

}  // namespace embertable
