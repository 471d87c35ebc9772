#include "engine/table_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "embertable/errors.h"
#include "testing/engine/batches.h"

namespace embertable::engine {
namespace {

using namespace engine_fixture;  // NOLINT: the vocabulary of these tests
using testing::HasSubstr;

/// The tables of the fixture on a strategy, or of a plain engine.
struct Stored {
  explicit Stored(const StrategyPtr& strategy, Nested<FeatureConfig> of = features())
      : setup(std::move(of), Optimizer("sgd", 0.1), strategy, EmbeddingOptions{}, nullptr),
        store(setup) {}
  void build() {
    std::shared_ptr<Tables> tables = store.prepare();
    store.claim_strategy(tables);
    store.adopt(std::move(tables));
  }
  const Setup setup;
  TableStore store;
};

TEST(TableStore, APlainEngineShowsItsTables) {
  Stored plain(nullptr);
  EXPECT_THAT(refusal<StateError>([&] { plain.store.require_built("save"); }),
              HasSubstr("save: the engine is not built"));
  plain.store.build_plain();
  plain.store.build_plain();
  const auto views = plain.store.views();
  EXPECT_EQ(views.size(), 2u);
  EXPECT_EQ(plain.store.own().tables()[0].name, "video");
}

TEST(TableStore, AStrategyHoldsOneBuiltEngineAndIsFreeAfterIt) {
  const StrategyPtr strategy = make_strategy();
  Stored second(strategy);
  {
    Stored first(strategy);
    first.build();
    EXPECT_THAT(refusal<StateError>([&] { second.store.require_free_strategy(); }),
                HasSubstr("holds an initialized engine already"));
  }
  second.store.require_free_strategy();
}

TEST(TableStore, OneOfTwoThatFoundTheStrategyFreeGetsIt) {
  const StrategyPtr strategy = make_strategy();
  Stored first(strategy), second(strategy);
  const std::shared_ptr<Tables> late = second.store.prepare();
  second.store.require_free_strategy();
  first.build();
  EXPECT_THAT(refusal<StateError>([&] { second.store.claim_strategy(late); }),
              HasSubstr("holds an initialized engine already"));
  EXPECT_NO_THROW(first.store.own());
}

TEST(TableStore, TablesAreGoneOnceTheStrategyIsInitializedAnew) {
  const StrategyPtr strategy = make_strategy();
  Stored stored(strategy);
  stored.build();
  strategy->initialize();
  EXPECT_THAT(refusal<StateError>([&] { stored.store.own(); }), HasSubstr("are gone"));
}

TEST(TableStore, ALaterEngineOfTheStrategyIsReadWhereItsTablesAreAlike) {
  const StrategyPtr strategy = make_strategy();
  Stored first(strategy), alike(strategy);
  first.build();
  strategy->initialize();
  alike.build();
  EXPECT_TRUE(alike.store.owns(*first.store.held("read_rows")));
  EXPECT_THAT(refusal<StateError>([&] { first.store.own(); }),
              HasSubstr("the tables of another engine"));

  Stored other(strategy, one_feature(Combiner::kSum));
  EXPECT_THAT(refusal<StateError>([&] { other.store.held("read_rows"); }),
              HasSubstr("read_rows: the strategy holds the tables of another engine, and they are "
                        "not alike: table 0 must be"));
}

}  // namespace
}  // namespace embertable::engine
