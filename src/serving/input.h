#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "embertable/batch.h"
#include "embertable/config.h"
#include "input/batch_rules.h"
#include "input/sparse_order.h"
#include "kernels/gather/gather.h"
#include "serving/served_table.h"

namespace embertable::serving {

/// How a lookup differs from serving_embedding_lookup.
struct LookupForm {
  bool prunes = true;         ///< where the feature asks for validation
  std::uint64_t owner = 0;    ///< id of the object that takes gradients; 0: none does
  std::int32_t replica = -1;  ///< for messages; -1: none
};

/// One input of a lookup: measured, then filled. Borrows everything.
struct Input {
  LookupForm form;
  const FeatureConfig* feature = nullptr;
  const std::string* path = nullptr;
  Rows rows;
  const FeatureIds* ids = nullptr;
  FloatSpan weights;      ///< [entries] where `weighted`
  bool weighted = false;  ///< else every weight is 1
  bool prune = false;     ///< drop ids < 0 and, but for sums, weights <= 0
  Combiner combiner = Combiner::kSum;
  std::int64_t entries = 0;   ///< number of the caller's ids
  std::int64_t outputs = 0;   ///< output rows
  std::int64_t sequence = 0;  ///< output rows of one sample; 0: its entries are combined in one
  Gather<std::uint64_t> gather;
};

inline input::DataPlace place_of(const Input& in) { return {*in.path, in.form.replica}; }

/// Memory to sort the entries of one input in; reused.
struct SortBuffers {
  std::vector<input::PlacedEntry> order, spare;
};

/// Checks what does not depend on the values and returns the activation's shape; fills everything
/// but `gather`. Requires: form, feature, path, rows and ids are set. Throws ValueError or
/// DataError naming the path.
Shape measure(Input& in, const FeatureWeights* weights);

/// Whether the rows of a measured input are prefetched early, while other inputs are measured and
/// filled: so few that the gather's own prefetches would come too late.
inline bool are_rows_fetched(const Input& in) noexcept {
  constexpr std::int64_t kMostRows = 64, kMostBytes = 16 << 10;
  return in.entries <= kMostRows &&
         in.entries * in.rows.dim * bytes_per_element(in.rows.type) <= kMostBytes;
}

/// Prefetches the rows of a measured input, where they are. Its ids need not be checked yet.
void fetch_rows(const Input& in) noexcept;

/// Returns the bytes of scratch that `fill` takes, a multiple of 8.
std::int64_t scratch_bytes(const Input& in) noexcept;

/// Checks the values and completes `gather` but for `out` and `next`. Throws DataError naming path,
/// sample, position and value; DataLoss.
void fill(Input& in, std::byte* scratch, SortBuffers& sort);

[[noreturn]] void refuse(const Input& in, const std::string& rule);

}  // namespace embertable::serving
