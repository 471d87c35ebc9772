#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "embertable/batch.h"
#include "embertable/embedding.h"
#include "embertable/shape.h"
#include "embertable/version.h"

namespace embertable {

/// Layout of the features of a table in one tensor of the table, [batch_size * num_features, dim]:
/// sample by sample, and in each sample slot by slot. A feature takes one slot, a sequence one slot
/// per position. A value, complete and checked once constructed. Source: TF 2.4
/// tpu_embedding_v2.py, TPUEmbedding.dequeue; tpu_embedding.py, TPUEmbedding.get_activations.
class EMBERTABLE_API InterleavedLayout {
 public:
  /// A table to lay out.
  struct Table {
    std::string name;
    std::int32_t dim = 0;  ///< >= 1
  };

  /// A feature to lay out.
  struct Feature {
    std::string name;
    std::string table;                     ///< name of its table
    std::int64_t max_sequence_length = 0;  ///< 0: one vector for each sample
  };

  /// A table with the features that have slots in it.
  struct PlacedTable {
    std::string name;
    std::int32_t dim = 0;
    std::int64_t num_features = 0;       ///< slots of a sample
    std::vector<std::int64_t> features;  ///< positions of its features, in the order of their slots
  };

  /// A feature with its slots in each sample of its table.
  struct PlacedFeature {
    std::string name;
    std::int64_t table = 0;  ///< position of its table
    std::int64_t max_sequence_length = 0;
    std::int64_t first_slot = 0;
    std::int64_t slots = 1;
  };

  /// Lays out the features of a table in the given order. Throws ValueError naming table or feature
  /// for a repeated or unknown name, a table without features, a dim or batch size below 1, a
  /// length below 0, or a tensor of more than 2^62 numbers.
  InterleavedLayout(const std::vector<Table>& tables, const std::vector<Feature>& features,
                    std::int64_t batch_size);

  /// Lays out tables and features in the order of their names, like the v1 API.
  static InterleavedLayout sorted_by_name(std::vector<Table> tables, std::vector<Feature> features,
                                          std::int64_t batch_size);

  std::int64_t batch_size() const noexcept { return batch_size_; }
  const std::vector<PlacedTable>& tables() const noexcept { return tables_; }
  const std::vector<PlacedFeature>& features() const noexcept { return features_; }

  /// Returns [batch_size * num_features, dim] of the table at a position. Requires: it exists.
  Shape table_shape(std::int64_t table) const;

  /// Returns [batch_size, dim], or [batch_size, max_sequence_length, dim] for a sequence, of the
  /// feature at a position. Requires: it exists.
  Shape feature_shape(std::int64_t feature) const;

 private:
  void place(const Feature& feature);

  std::int64_t batch_size_ = 0;
  std::vector<PlacedTable> tables_;
  std::vector<PlacedFeature> features_;
};

/// Returns the layout of the activations of one replica of a built engine: tables in its order,
/// features, named by their paths, in flatten order. Throws StateError if the engine is plain or
/// not built, ValueError naming a feature whose output shape is neither [B] nor [B, L] with the B
/// of all others.
EMBERTABLE_API InterleavedLayout interleaved_layout(const Embedding& engine);

/// Takes tensors of tables apart into activations of features. Both sides are caller-owned, must
/// not overlap, and must have the number of floats that their shapes in the layout require, or
/// ValueError names table or feature, shape and size before anything is written. Thread-safe.
EMBERTABLE_API void deinterleave(const InterleavedLayout& layout,
                                 std::span<const std::span<const float>> tables,
                                 std::span<const std::span<float>> features);
EMBERTABLE_API std::vector<std::vector<float>> deinterleave(
    const InterleavedLayout& layout, std::span<const std::span<const float>> tables);

/// Puts gradients of features, or activations, into the tensors of their tables; none counts as
/// zeros. A feature that is no sequence may also have the shape [batch_size, 1, dim]. Throws what
/// `deinterleave` throws.
EMBERTABLE_API void interleave(const InterleavedLayout& layout, std::span<const Gradient> features,
                               std::span<const std::span<float>> tables);
EMBERTABLE_API std::vector<std::vector<float>> interleave(const InterleavedLayout& layout,
                                                          std::span<const Gradient> features);

/// Interleaves the activations of one replica, 0 <= replica < activations.replicas().
EMBERTABLE_API std::vector<std::vector<float>> interleave(const InterleavedLayout& layout,
                                                          const Activations& activations,
                                                          std::int32_t replica = 0);

}  // namespace embertable
