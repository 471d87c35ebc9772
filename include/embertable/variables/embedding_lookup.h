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
#include "embertable/export.h"
#include "embertable/strategy.h"
#include "embertable/variables/sharded_variable.h"
#include "embertable/variables/tensor.h"

namespace embertable {

/// What ids are looked up in: one table, in one piece or in parts. Shares memory, copies no rows.
class EMBERTABLE_API LookupParams {
 public:
  /// Rows are where the variable has them, whatever the sizes of its components and the strategy.
  LookupParams(const ShardedVariable& variable);  // NOLINT: written as params

  LookupParams(Tensor part);                         // NOLINT: written as params
  LookupParams(const Variable& part);                // NOLINT: written as params
  LookupParams(std::vector<Tensor> parts);           // NOLINT: written as params
  LookupParams(const std::vector<Variable>& parts);  // NOLINT: written as params

  const std::vector<Tensor>& parts() const noexcept { return parts_; }

  /// For messages: of the container, empty for a list; and of the parts, empty for tensors.
  const std::string& name() const noexcept { return name_; }
  const std::vector<std::string>& part_names() const noexcept { return part_names_; }

  /// The parts follow each other: no strategy says where a row is.
  bool is_container() const noexcept { return is_container_; }

 private:
  std::vector<Tensor> parts_;
  std::string name_;
  std::vector<std::string> part_names_;
  bool is_container_ = false;
};

/// kDiv of "div", kMod of "mod". Throws ValueError: unrecognized partition strategy.
EMBERTABLE_API Sharding parse_partition_strategy(std::string_view name);

struct EmbeddingLookupOptions {
  /// Where a list of n parts has row r: kDiv, the parts follow each other, whatever their sizes;
  /// kMod, part r % n has it as its row r / n.
  Sharding partition_strategy = Sharding::kDiv;

  /// A row x that is looked up counts as x * max_norm / max(|x|, max_norm), |x| being the root of
  /// the sum of the squares of all its elements. Finite, > 0. Only of floating-point tables.
  std::optional<double> max_norm = {};

  /// Gathers and sums. Null: the calling thread. Never shows in a result.
  std::shared_ptr<Executor> executor = {};
};

/// Values in nested rows of varying length.
struct RaggedTensor {
  /// Outermost first: each from 0, never falling, to the number of rows of the next, of the values
  /// at last.
  std::vector<std::vector<std::int64_t>> row_splits;
  Tensor values;
};

// Lookups, pure functions. All throw ValueError for params without parts, of rank 0, of different
// dtypes or rows, or a max_norm that is out of range or of a table of integers or bool; IndexError
// naming the first id that no row has, its position, the number of rows, and the variable and the
// part where it would be. Source: TF embedding_ops.py.

/// Shape of the ids + that of a row: the row of each id, int32 or int64 of any rank (ValueError
/// otherwise).
EMBERTABLE_API Tensor embedding_lookup(const LookupParams& params, const Tensor& ids,
                                       const EmbeddingLookupOptions& options = {});

/// The same rows of rows, with a row of the table for each id. Also throws ValueError for splits
/// that do not lead to the values.
EMBERTABLE_API RaggedTensor embedding_lookup(const LookupParams& params, const RaggedTensor& ids,
                                             const EmbeddingLookupOptions& options = {});

struct SparseLookupOptions : EmbeddingLookupOptions {
  Combiner combiner = Combiner::kMean;
};

/// Row i: the sum of weight * row over the entries of the ids whose first index is i, in their
/// order; for mean divided by the sum of the weights, for sqrtn by the root of the sum of their
/// squares. Zeros where there are no entries or that is 0. Shape: rows of the ids + that of a row.
/// Tables of float32 give the bits that the engine's lookups give; float16 and bfloat16 are summed
/// as float32 and rounded once.
///
/// Throws TypeError for dense ids and weights of another kind than the ids; ValueError for another
/// number of weights than of ids and a table of integers or bool; DataError naming sample and
/// position for indices outside of their shape and splits that fall.
EMBERTABLE_API Tensor embedding_lookup_sparse(const LookupParams& params, const FeatureIds& ids,
                                              const FeatureWeights& weights = {},
                                              const SparseLookupOptions& options = {});

struct SafeLookupOptions : SparseLookupOptions {
  /// The row of rows without entries. Unset: zeros.
  std::optional<std::int64_t> default_id = {};
};

/// The same without ids below 0 and, but for sums, without weights that are not above 0. All axes
/// of the ids but the last stay: shape [leading axes] + that of a row.
EMBERTABLE_API Tensor safe_embedding_lookup_sparse(const LookupParams& params,
                                                   const FeatureIds& ids,
                                                   const FeatureWeights& weights = {},
                                                   const SafeLookupOptions& options = {});

}  // namespace embertable
