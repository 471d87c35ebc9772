// Random direct lookups, gradients and steps against a slow reference in double.
#include <gtest/gtest.h>

#include "testing/serving/direct_lookups.h"
#include "testing/serving/random_lookups.h"

namespace embertable {
namespace {

using namespace lookup_draws;  // NOLINT: random lookups and what they give

constexpr unsigned kDrawsPerCell = 20;

enum class Rule { kSgd, kAdagrad, kMomentum };

Optimizer optimizer_of(Rule rule) {
  if (rule == Rule::kSgd) return Optimizer("sgd", 0.5);
  if (rule == Rule::kAdagrad)
    return Optimizer("adagrad", 0.5, {{"initial_accumulator_value", 0.25}});
  return Optimizer("momentum", 0.5, {{"momentum", 0.5}});
}

/// A table with one slot, in double.
struct Trained {
  std::vector<double> rows, slot;

  void step(Rule rule, const Draw& d, const std::vector<double>& gradient) {
    const std::size_t dim = d.dim;
    for (const std::int64_t id : expected_ids(d))
      for (std::size_t i = static_cast<std::size_t>(id) * dim;
           i < (static_cast<std::size_t>(id) + 1) * dim; ++i) {
        const double g = gradient[i];
        if (rule == Rule::kAdagrad) {
          slot[i] += g * g;
          rows[i] -= 0.5 * g / std::sqrt(slot[i]);
        } else {
          slot[i] = rule == Rule::kMomentum ? 0.5 * slot[i] + g : g;
          rows[i] -= 0.5 * slot[i];
        }
      }
  }
};

F floats_of(DirectEmbedding& direct, std::int32_t dim) {
  return variable(direct, direct.tables()[0].name, kRows, dim);
}

/// Three steps of one replica.
void check(const Draw& d, unsigned seed) {
  const auto rule = static_cast<Rule>(seed % 3);
  const OwnArrays arrays(d);
  DirectEmbedding direct(config_of(d), optimizer_of(rule), accelerator());
  Trained want{first_rows(d), {}};
  want.slot.assign(want.rows.size(), rule == Rule::kAdagrad ? 0.25 : 0);
  LookupOutput output;
  for (unsigned step = 0; step < 3; ++step) {
    direct.embedding_lookup(arrays.batch, output);
    EXPECT_EQ(output(0).shape, shape_of(d));
    expect_near(output(0).values, expected(d, want.rows), 1e-5);
    const F upstream = upstream_of(d, seed + 1000 * step);
    const Nested<Gradient> tree(Gradient{upstream, {}});
    const auto gradients = direct.gradients({&output, 1}, {&tree, 1});
    EXPECT_EQ(gradients.begin()->second.ids, expected_ids(d));
    direct.apply_gradients(output, tree);
    want.step(rule, d, expected_gradient(d, upstream));
    expect_near(floats_of(direct, d.dim), want.rows, 1e-5);
  }
}

TEST(DirectReference, LookupsGradientsAndStepsAgree) { for_each_draw(kDrawsPerCell, true, check); }

/// Replicas and features add up: the same draw on every replica gives its gradient times their
/// number.
TEST(DirectReference, GradientsOfReplicasAddUp) {
  for (unsigned seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const auto replicas = static_cast<std::int32_t>(1 + seed % 4);
    const Draw d =
        draw(Kind::kRagged, static_cast<Combiner>(seed % 3), seed % 2 == 0, 2, true, seed, true);
    const OwnArrays arrays(d);
    DirectEmbedding direct(config_of(d), Optimizer("sgd", 1), accelerator(replicas));
    const auto lookups = direct.embedding_lookup(std::span(&arrays.batch, 1));
    const F upstream = upstream_of(d, seed);
    const std::vector<Nested<Gradient>> trees(replicas, Nested<Gradient>(Gradient{upstream, {}}));
    direct.apply_gradients(lookups, trees);
    std::vector<double> want = first_rows(d);
    const std::vector<double> gradient = expected_gradient(d, upstream);
    for (std::size_t i = 0; i < want.size(); ++i) want[i] -= replicas * gradient[i];
    expect_near(floats_of(direct, d.dim), want, 1e-5);
  }
}

}  // namespace
}  // namespace embertable
