// Entry points refuse numbers that are no enumerators: a cast makes any number one.
#include <gtest/gtest.h>

#include <functional>

#include "embertable/embertable.h"
#include "embertable/tensorflow/partitioned_csr.h"
#include "embertable/tensorflow/v1.h"
#include "embertable/variables/embedding_lookup.h"
#include "testing/refusal.h"
#include "testing/serving/lookups.h"

namespace embertable {
namespace {

using engine_fixture::batch_of;

struct Refused {
  const char* text;
  std::function<void()> call;
};

/// One past the last enumerator, and one far beyond.
template <class E>
std::vector<E> unknown(E last) {
  return {static_cast<E>(static_cast<int>(last) + 1), static_cast<E>(200)};
}

const std::vector<std::int64_t> kIds = {1, 0}, kSplits = {0, 2};

Nested<FeatureConfig> features() { return engine_fixture::one_feature(Combiner::kSum); }
RaggedIds ragged() { return {kIds, kSplits}; }
Tensor params() { return Tensor(DType::kFloat32, Shape({2, 1})); }

v1::TPUEmbedding v1_engine(v1::Mode mode) {
  v1::TPUEmbedding::Tables tables;
  tables["t"] = {.vocabulary_size = 2, .dimension = 1};
  return {tables, {{"f", {"t"}}}, 1, mode};
}

std::map<TablePtr, TableView> one_table(const TablePtr& table) {
  static float rows[2] = {};
  return {{table, TableView{rows, 2, 1, 1}}};
}

TEST(Enumerators, EveryEntryPointNamesAnUnknownValue) {
  std::vector<Refused> all;
  for (const OpenTables tables : unknown(OpenTables::kLoad))
    all.push_back({"serving options: tables: unknown value ",
                   [=] { ServingEmbedding(features(), {}, {}, {.tables = tables}); }});
  for (const Checks checks : unknown(Checks::kNone))
    all.push_back({"serving options: checks: unknown value ",
                   [=] { ServingEmbedding(features(), {}, {}, {.checks = checks}); }});
  for (const OutOfRange value : unknown(OutOfRange::kDrop))
    all.push_back({"embedding options: out_of_range: unknown value ", [=] {
                     Embedding(features(), Optimizer("sgd", 1), {}, {.out_of_range = value});
                   }});
  for (const GradientPolicy value : unknown(GradientPolicy::kError))
    all.push_back({"embedding options: gradient_policy: unknown value ", [=] {
                     Embedding(features(), Optimizer("sgd", 1), {}, {.gradient_policy = value});
                   }});
  for (const ApiRevision revision : unknown(ApiRevision::kBatchSize)) {
    all.push_back({"embedding options: revision: unknown value ", [=] {
                     Embedding(features(), Optimizer("sgd", 1), {}, {.revision = revision});
                   }});
    all.push_back({"lookup: revision: unknown value ", [=] {
                     serving_embedding_lookup(batch_of(ragged()), {}, features(), revision);
                   }});
  }
  for (const Sharding sharding : unknown(Sharding::kMod)) {
    all.push_back({"strategy: sharding: unknown value ",
                   [=] { EngineStrategy(StrategyOptions{.sharding = sharding}); }});
    EmbeddingLookupOptions options;
    options.partition_strategy = sharding;
    all.push_back({"lookup: partition_strategy: unknown value ", [=] {
                     embedding_lookup(params(), Tensor(DType::kInt64, Shape({1})), options);
                   }});
    SparseLookupOptions sparse;
    sparse.partition_strategy = sharding;
    all.push_back({"lookup: partition_strategy: unknown value ",
                   [=] { embedding_lookup_sparse(params(), ragged(), {}, sparse); }});
  }
  for (const Combiner combiner : unknown(Combiner::kSqrtN)) {
    SafeLookupOptions options;
    options.combiner = combiner;
    all.push_back({"lookup: combiner: unknown value ",
                   [=] { embedding_lookup_sparse(params(), ragged(), {}, options); }});
    all.push_back({"lookup: combiner: unknown value ",
                   [=] { safe_embedding_lookup_sparse(params(), ragged(), {}, options); }});
    all.push_back({"combiner: unknown value ", [=] { to_coo(ragged(), {}, combiner, 1); }});
    const auto table = std::make_shared<const TableConfig>(
        TableConfig{.vocabulary_size = 2, .dim = 1, .combiner = combiner});
    all.push_back({"lookup: combiner: unknown value ", [=] {
                     serving_embedding_lookup(batch_of(ragged()), one_table(table),
                                              Nested<FeatureConfig>(FeatureConfig{.table = table}));
                   }});
  }
  for (const RowType type : unknown(RowType::kInt8))
    all.push_back({"table: row_type: unknown value ",
                   [=] { make_table({.vocabulary_size = 2, .dim = 1, .row_type = type}); }});
  for (const KeyKind kind : unknown(KeyKind::kString)) {
    all.push_back({"id map: kind: unknown value ", [=] { IdMapBuilder{kind}; }});
    all.push_back({"id map: kind: unknown value ", [=] { IdMap::hashed(kind, 1); }});
  }
  all.push_back({"id map: kind: unknown value ", [] { IdMapBuilder{KeyKind{0}}; }});
  for (const RowOrder order : unknown(RowOrder::kMostFrequent))
    all.push_back({"id map: row_order: unknown value ",
                   [=] { IdMapBuilder(KeyKind::kInteger).build({.row_order = order}); }});
  for (const v1::Mode mode : unknown(v1::Mode::kTraining)) {
    all.push_back({"enqueue: mode_override: unknown value ", [=] {
                     v1::TPUEmbedding engine = v1_engine(v1::Mode::kInference);
                     const std::vector<v1::TPUEmbedding::RaggedFeatureData> data(1);
                     engine.enqueue(data, mode);
                   }});
    all.push_back({"mode must be training, 2, or inference, 1, got ", [=] { v1_engine(mode); }});
  }
  for (const Refused& one : all) {
    const std::string text = refusal<ValueError>(one.call);
    EXPECT_EQ(text.substr(0, std::string_view(one.text).size()), one.text);
    EXPECT_GT(text.size(), std::string_view(one.text).size());
  }
}

}  // namespace
}  // namespace embertable
