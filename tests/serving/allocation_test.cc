// Once its output has held as much, a lookup allocates nothing: counted through malloc.
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>

#include "testing/serving/lookups.h"

namespace {
std::atomic<std::int64_t> allocations = 0;
}  // namespace

extern "C" {
void* __libc_malloc(std::size_t size);                           // NOLINT: glibc's names
void* __libc_calloc(std::size_t n, std::size_t size);            // NOLINT
void* __libc_realloc(void* old, std::size_t size);               // NOLINT
void* __libc_memalign(std::size_t alignment, std::size_t size);  // NOLINT

void* malloc(std::size_t size) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_malloc(size);
}
void* calloc(std::size_t n, std::size_t size) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_calloc(n, size);
}
void* realloc(void* old, std::size_t size) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_realloc(old, size);
}
void* aligned_alloc(std::size_t alignment, std::size_t size) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_memalign(alignment, size);
}
}

namespace embertable {
namespace {

using namespace engine_fixture;  // NOLINT: tables, data and batches of the cases

/// Allocations of 100 rounds of a few batches, after some.
template <class LookUp>
std::int64_t steady_allocations(const std::vector<Batch>& batches, LookUp look_up) {
  for (int i = 0; i < 3; ++i)
    for (const Batch& batch : batches) look_up(batch);
  const std::int64_t before = allocations;
  for (int i = 0; i < 100; ++i)
    for (const Batch& batch : batches) look_up(batch);
  return allocations - before;
}

TEST(ServingAllocation, ASteadyLookupAllocatesNothing) {
  const AllSamples all;
  const std::vector<double> w6(6, 0.5), w8(8, 2);
  const Ids ids = {1, 2, 3}, indices = {2, 0, 0, 1, 0, 0};
  const std::vector<std::int32_t> narrow = {1, 2};
  Batch sparse = all.sparse(), ragged = all.ragged();
  sparse.weights = weights_of(SparseWeights{w6}, {}, SparseWeights{w8});
  ragged.weights = weights_of(RaggedWeights{w6}, {}, RaggedWeights{w8});
  const std::vector<Batch> batches = {
      sparse, ragged,
      batch_of(DenseIds{ids, {}}, DenseIds{narrow, {2, 1}}, SparseIds{indices, ids, {3, 2}})};
  const auto config = features();
  LookupOutput output;

  ServingEmbedding serving(config);
  EXPECT_EQ(
      steady_allocations(batches, [&](const Batch& b) { serving.embedding_lookup(b, output); }), 0);
  const auto tables = serving.embedding_tables();
  EXPECT_EQ(
      steady_allocations(
          batches, [&](const Batch& b) { serving_embedding_lookup(b, tables, config, output); }),
      0);

  const TemporaryDirectory run;
  Embedding engine = engine_with(accelerator(3, 3));
  engine.build(2);
  engine.save(run.path());
  ServingEmbedding mapped =
      ServingEmbedding::open(run.path(), config, {.tables = OpenTables::kMap});
  EXPECT_EQ(
      steady_allocations(batches, [&](const Batch& b) { mapped.embedding_lookup(b, output); }), 0);
}

TEST(ServingAllocation, AFreshOutputTakesTheMemoryOfOneThatIsGone) {
  const AllSamples all;
  const std::vector<Batch> batches = {all.sparse(), all.ragged()};
  ServingEmbedding serving(features());
  EXPECT_EQ(steady_allocations(batches, [&](const Batch& b) { serving.embedding_lookup(b); }), 0);
}

TEST(ServingAllocation, APartOfTheFeaturesAllocatesNothingEither) {
  const AllSamples all;
  const std::vector<Batch> batches = {
      {Nested<FeatureIds>::list({FeatureIds(all.watched.sparse())}), {}}};
  ServingEmbedding serving(features());
  LookupOutput output;
  EXPECT_EQ(
      steady_allocations(batches, [&](const Batch& b) { serving.embedding_lookup(b, output); }), 0);
}

}  // namespace
}  // namespace embertable
