#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "embertable/batch.h"
#include "embertable/config.h"
#include "embertable/executor.h"
#include "embertable/strategy.h"
#include "embertable/variables/sharded_variable.h"
#include "embertable/variables/tensor.h"
#include "embertable/version.h"

namespace embertable {

/// The table that ids are looked up in, in one piece or in parts. Shares memory, copies no rows.
class EMBERTABLE_API LookupParams {
 public:
  /// Takes a sharded variable, whose layout says where a row is, whatever the sizes of its
  /// components and the strategy.
  LookupParams(const ShardedVariable& variable);  // NOLINT: written as params

  /// Take parts in their order; EmbeddingLookupOptions::partition_strategy says which part has a
  /// row. They throw TypeError for an empty handle, StateError for a placeholder.
  LookupParams(Tensor part);                         // NOLINT: written as params
  LookupParams(const Variable& part);                // NOLINT: written as params
  LookupParams(std::vector<Tensor> parts);           // NOLINT: written as params
  LookupParams(const std::vector<Variable>& parts);  // NOLINT: written as params

  const std::vector<Tensor>& parts() const noexcept { return parts_; }

  /// Return the names that messages use: the sharded variable's, empty for parts; and the parts',
  /// empty for tensors.
  const std::string& name() const noexcept { return name_; }
  const std::vector<std::string>& part_names() const noexcept { return part_names_; }

  /// True for a sharded variable, whose parts follow each other whatever the partition strategy.
  bool is_container() const noexcept { return is_container_; }

 private:
  std::vector<Tensor> parts_;
  std::string name_;
  std::vector<std::string> part_names_;
  bool is_container_ = false;
};

/// Returns kDiv for "div" and kMod for "mod". Throws ValueError for another name.
EMBERTABLE_API Sharding parse_partition_strategy(std::string_view name);

/// Options of every lookup below.
struct EmbeddingLookupOptions {
  /// Says which of n parts has row r. kDiv: the parts follow each other, whatever their sizes;
  /// kMod: part r % n has it as its row r / n.
  Sharding partition_strategy = Sharding::kDiv;

  /// Limits the norm of rows: a row x counts as x * max_norm / max(|x|, max_norm), |x| being the
  /// root of the sum of the squares of all its elements. Finite, > 0; it need not fit the table's
  /// dtype. Requires a floating-point table.
  std::optional<double> max_norm = {};

  /// Runs gathers and sums. Null: the calling thread. It never shows in a result.
  std::shared_ptr<Executor> executor = {};
};

/// Values in nested rows of varying length, such as the words of the sentences of documents.
struct RaggedTensor {
  /// Splits, outermost first. Each list rises from 0 to the number of rows of the next one, the
  /// last to the number of values, and never falls.
  std::vector<std::vector<std::int64_t>> row_splits;

  /// [number of values] + the shape of a value.
  Tensor values;
};

// Lookups are pure functions. All throw ValueError for params without parts, of rank 0, of
// different dtypes or rows, a max_norm that is out of range or meets a table of integers or bool,
// or a value that is no strategy or combiner; IndexError naming the first id that no row has, its
// position, the number of rows, and the variable and the part where it would be. Source: TF
// embedding_ops.py.

/// Returns the row of each id, shape of the ids + shape of a row. Ids are int32 or int64 of any
/// rank (ValueError otherwise).
EMBERTABLE_API Tensor embedding_lookup(const LookupParams& params, const Tensor& ids,
                                       const EmbeddingLookupOptions& options = {});

/// Returns the same nested rows, with a row of the table for each id. Also throws ValueError for
/// splits that do not lead to the values.
EMBERTABLE_API RaggedTensor embedding_lookup(const LookupParams& params, const RaggedTensor& ids,
                                             const EmbeddingLookupOptions& options = {});

/// Options of `embedding_lookup_sparse`.
struct SparseLookupOptions : EmbeddingLookupOptions {
  /// Combines the rows of one sample into one.
  Combiner combiner = Combiner::kMean;
};

/// Returns combined rows, shape: rows of the ids + shape of a row. Row i is the sum of weight * row
/// over the entries of the ids whose first index is i, in their order; for mean divided by the sum
/// of the weights, for sqrtn by the root of the sum of their squares. It is zeros without entries
/// or with a divisor of 0. Tables of float32 give the bits that the engine's lookups give; float16
/// and bfloat16 are summed as float32 and rounded once, clipped rows before.
///
/// Throws TypeError for dense ids and weights of another kind than the ids; ValueError for a shape
/// that sparse ids cannot have and a table of integers or bool; DataError, which names sample and
/// position where there are some, for another number of weights or of indices than the ids need,
/// indices outside of their shape, and splits that are none, fall, or do not go from 0 to the
/// number of ids.
EMBERTABLE_API Tensor embedding_lookup_sparse(const LookupParams& params, const FeatureIds& ids,
                                              const FeatureWeights& weights = {},
                                              const SparseLookupOptions& options = {});

/// Options of `safe_embedding_lookup_sparse`.
struct SafeLookupOptions : SparseLookupOptions {
  /// Id whose row stands for rows without entries. Unset: zeros.
  std::optional<std::int64_t> default_id = {};
};

/// Looks up without ids below 0 and, except for sums, without weights that are not above 0. All
/// axes of the ids but the last stay: shape [leading axes] + shape of a row. Throws what
/// embedding_lookup_sparse throws.
EMBERTABLE_API Tensor safe_embedding_lookup_sparse(const LookupParams& params,
                                                   const FeatureIds& ids,
                                                   const FeatureWeights& weights = {},
                                                   const SafeLookupOptions& options = {});

}  // namespace embertable
