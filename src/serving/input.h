#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "embertable/batch.h"
#include "embertable/config.h"
#include "input/sparse_order.h"
#include "kernels/gather.h"
#include "serving/served_table.h"

namespace embertable::serving {

/// Most ids and most output rows of one input.
inline constexpr std::int64_t kMostEntries = (std::int64_t{1} << 31) - 1;

/// How a lookup differs from serving_embedding_lookup.
struct LookupForm {
  bool prunes = true;          ///< where the feature asks for validation
  bool keeps_entries = false;  ///< for gradients: nothing of the caller's is read later
  std::uint64_t owner = 0;     ///< id of an object that takes gradients; 0: none does
  std::int32_t replica = -1;   ///< in messages; -1: none
};

/// One input of a lookup: measured, then filled. All is borrowed.
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
  std::int64_t entries = 0;   ///< ids of the caller's
  std::int64_t outputs = 0;   ///< output rows
  std::int64_t sequence = 0;  ///< output rows of one sample; 0: its entries are combined in one
  Gather<std::uint64_t> gather;
};

/// Memory to sort the entries of one input in; reused.
struct SortBuffers {
  std::vector<input::PlacedEntry> order, spare;
};

/// Checks what does not depend on the values and gives the activation's shape; fills all but
/// `gather`. form, feature, path, rows and ids are set. Throws ValueError or DataError naming the
/// path.
Shape measure(Input& in, const FeatureWeights* weights);

/// Has the rows of a measured input that is small come into cache. Its ids need not be checked yet.
void fetch_rows(const Input& in) noexcept;

/// Bytes of scratch that `fill` takes, a multiple of 8.
std::int64_t scratch_bytes(const Input& in) noexcept;

/// Checks the values and completes `gather` but for `out` and `next`. Throws DataError naming path,
/// sample, position and value; DataLoss.
void fill(Input& in, std::byte* scratch, SortBuffers& sort);

[[noreturn]] void refuse(const Input& in, const std::string& rule);
[[noreturn]] void refuse_data(const Input& in, std::int64_t sample, std::int64_t position,
                              const std::string& rule);

}  // namespace embertable::serving
