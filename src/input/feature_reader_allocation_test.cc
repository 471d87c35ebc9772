#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <vector>

#include "testing/feature_reader.h"

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"  // inlined, the pair below is taken apart
#endif

namespace {
std::atomic<std::int64_t> allocations{0};
}  // namespace

void* operator new(std::size_t bytes) {
  ++allocations;
  if (void* const memory = std::malloc(bytes == 0 ? 1 : bytes)) return memory;
  throw std::bad_alloc();
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  ++allocations;
  return std::malloc(bytes);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace embertable::input {
namespace {

TEST(FeatureReader, AllocatesNothingFromTheThirdBatchOn) {
  constexpr std::int64_t kOutputs = 3 * kTileRows;
  std::vector<std::int64_t> ids(kOutputs), splits(kOutputs + 1), sorted, mixed;
  for (std::int64_t i = 0; i < kOutputs; ++i) {
    splits[i + 1] = i + 1;
    ids[i] = i % 120;  // 100 and more are dropped
    sorted.insert(sorted.end(), {i, 0});
    mixed.insert(mixed.end(), {kOutputs - 1 - i, 0});
  }
  const std::vector<float> weights(ids.size(), 0.5f);
  const FeatureSpec spec = {.path = "a path that is longer than a short string may be",
                            .vocabulary_size = 100,
                            .combiner = Combiner::kMean,
                            .output_shape = {kOutputs},
                            .drop_out_of_range = true};
  const FeatureIds dense = DenseIds{ids}, ragged = RaggedIds{splits, ids};
  const FeatureIds in_order = SparseIds{sorted, ids, {kOutputs, 2}};
  const FeatureIds out_of_order = SparseIds{mixed, ids, {kOutputs, 2}};
  const FeatureWeights none, ragged_weights = RaggedWeights{weights},
                             sparse_weights = SparseWeights{weights};
  Arena arena;
  FeatureReader reader;
  const auto read_one = [&](const FeatureIds& batch, const FeatureWeights& weight) {
    reader.start(spec, batch, weight, 0, 7, arena);
    for (std::int64_t t = 0; t < reader.tiles(); ++t) reader.read_tile(t, SimdLevel::kScalar);
    reader.finish();
  };
  std::int64_t before = 0, bytes = 0;
  for (int batch = 0; batch < 5; ++batch) {
    arena.reset();
    if (batch == 2) before = allocations;
    if (batch == 2) bytes = arena.bytes();
    read_one(dense, none);
    read_one(ragged, ragged_weights);
    read_one(in_order, sparse_weights);
    read_one(out_of_order, sparse_weights);
  }
  EXPECT_EQ(allocations - before, 0);
  EXPECT_EQ(arena.bytes(), bytes);
  EXPECT_GT(reader.dropped_ids(), 0);
}

TEST(FeatureReader, TakesMemoryToSortOnlyForEntriesThatAreOutOfOrder) {
  constexpr std::int64_t kOutputs = 64 * kTileRows;
  const std::vector<std::int64_t> ids(kOutputs, 1);
  std::vector<std::int64_t> sorted, mixed;
  for (std::int64_t i = 0; i < kOutputs; ++i) {
    sorted.insert(sorted.end(), {i, 0});
    mixed.insert(mixed.end(), {kOutputs - 1 - i, 0});
  }
  const FeatureSpec spec = {.path = "f", .vocabulary_size = 100, .output_shape = {kOutputs}};
  const auto bytes_for = [&](const std::vector<std::int64_t>& indices) {
    Arena arena;
    FeatureReader reader;
    reader.start(spec, SparseIds{indices, ids, {kOutputs, 2}}, {}, 0, 0, arena);
    for (std::int64_t t = 0; t < reader.tiles(); ++t) reader.read_tile(t, SimdLevel::kScalar);
    reader.finish();
    return arena.bytes();
  };
  // Both grow in steps.
  EXPECT_GE(bytes_for(mixed), bytes_for(sorted) + 16 * kOutputs);
}

}  // namespace
}  // namespace embertable::input
