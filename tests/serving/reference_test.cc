// Random lookups and gradients against a slow reference in double.
#include <gtest/gtest.h>

#include "testing/serving/random_lookups.h"

namespace embertable {
namespace {

using namespace lookup_draws;  // NOLINT: random lookups and what they give

constexpr unsigned kDrawsPerCell = 60;

TEST(ServingReference, AgreesForEveryKindCombinerWeightsRankAndEmptiness) {
  for_each_draw(kDrawsPerCell, false, [](const Draw& d, unsigned) {
    const OwnArrays arrays(d);
    ServingEmbedding serving(config_of(d));
    const LookupOutput output = serving(arrays.batch);
    EXPECT_EQ(output(0).shape, shape_of(d));
    expect_near(output(0).values, expected(d, first_rows(d)), 2e-6);
  });
}

/// [kRows, dim].
F dense(const GradientSumsOfTable& gradient, std::int32_t dim) {
  const std::size_t width = dim;
  F all(static_cast<std::size_t>(kRows) * width);
  for (std::size_t i = 0; i < gradient.ids.size(); ++i)
    std::copy_n(gradient.sums.begin() + static_cast<std::ptrdiff_t>(i * width), width,
                all.begin() + gradient.ids[i] * dim);
  return all;
}

TEST(ServingReference, GradientsAgreeAndNameTheRowsThatWereLookedUp) {
  for_each_draw(kDrawsPerCell / 2, false, [](const Draw& d, unsigned seed) {
    const OwnArrays arrays(d);
    const auto config = config_of(d);
    F rows(kRows * d.dim);
    const F upstream = upstream_of(d, seed);
    const auto gradients = serving_embedding_gradients(
        arrays.batch, Nested<Gradient>(Gradient{upstream, {}}),
        {{config[0].table, {rows.data(), kRows, d.dim, d.dim}}}, config);
    const GradientSumsOfTable& got = gradients.at(config[0].table);
    EXPECT_EQ(got.ids, expected_ids(d));
    expect_near(dense(got, d.dim), expected_gradient(d, upstream), 4e-6);
  });
}

/// The bits that the engine gives for the same batch, wherever both take it.
TEST(ServingReference, GivesTheEnginesBits) {
  for (unsigned seed = 1; seed <= 400; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const auto kind = seed % 2 == 0 ? Kind::kSparse : Kind::kRagged;
    const auto combiner = static_cast<Combiner>(seed % 3);
    Draw d = draw(kind, combiner, seed % 5 < 3, 2, true, seed);
    if (d.outputs == 0) continue;
    for (Draw::Entry& e : d.entries) {  // nothing to prune
      e.id = std::max<std::int64_t>(e.id, 0);
      e.weight = std::abs(e.weight) + 0.3;
    }
    if (!d.weighted)
      for (Draw::Entry& e : d.entries) e.weight = 1;
    const OwnArrays arrays(d);
    const auto config = config_of(d);
    Embedding engine = engine_with(accelerator(), config);
    ServingEmbedding serving(config);
    EXPECT_EQ(values_of(serving(arrays.batch)), forward(engine, arrays.batch));
  }
}

}  // namespace
}  // namespace embertable
