// A table of more than 2^31 rows, of which little is touched.
#include <gtest/gtest.h>

#include "testing/engine/batches.h"

namespace embertable {
namespace {

using namespace engine_fixture;  // NOLINT: the vocabulary of these tests

/// 16 rows of a table trained as 4 replicas do, each twice over; `spread`: rows between one and the
/// next.
F sixteen_rows_trained(std::int64_t spread, std::int32_t hosts, Sharding sharding) {
  StrategyOptions strategy;
  strategy.hosts = hosts;
  strategy.replicas_per_host = 4 / hosts;
  strategy.sharding = sharding;
  strategy.executor = make_inline_executor();
  EmbeddingOptions options;
  options.tuning.bucket_bytes = 16;
  const std::int64_t rows = 15 * spread + 1;
  Embedding engine(one_zero_table(rows, 1), Optimizer("rowwise_adagrad", 0.1),
                   make_strategy(strategy), options);
  Ids ids, all, splits = {0};
  F weights, gradient;
  for (std::int64_t i = 0; i < 64; ++i) {
    ids.push_back(i * i * 7 % 16 * spread);
    weights.push_back(0.25f * static_cast<float>(i % 9));
    if (i % 3 == 2) splits.push_back(i + 1);
    if (i < 16) all.push_back(i * spread);
  }
  splits.push_back(64);
  for (std::size_t i = 0; i + 1 < splits.size(); ++i)
    gradient.push_back(0.1f * static_cast<float>(i) - 0.7f);
  const std::vector<Batch> batches(4, batch_of(RaggedIds{splits, ids}, RaggedWeights{weights}));
  F out;
  for (int step = 0; step < 2; ++step) {
    const F got =
        values(train(engine, batches, [&](const auto&, auto, auto) { return gradient; }), 0, 3);
    out.insert(out.end(), got.begin(), got.end());
  }
  F trained(all.size());
  engine.read_rows("t", all, trained);
  out.insert(out.end(), trained.begin(), trained.end());
  return out;
}

TEST(EngineWideRows, RowNumbersOf64BitsGiveTheBitsOf32) {
  const F narrow = sixteen_rows_trained(1, 1, Sharding::kDiv);
  constexpr std::int64_t kSpread = (std::int64_t{1} << 31) / 15 + 1;
  for (const std::int32_t hosts : {1, 2, 4}) {
    for (const Sharding sharding : {Sharding::kDiv, Sharding::kMod})
      EXPECT_EQ(sixteen_rows_trained(kSpread, hosts, sharding), narrow) << hosts << " hosts";
  }
}

}  // namespace
}  // namespace embertable
