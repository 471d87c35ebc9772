// The layout of per-table tensors: cases of TensorFlow (testdata/README.md), by hand, and at
// random.
#include "embertable/tensorflow/interleave.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>

#include "testing/engine/batches.h"
#include "testing/executor.h"
#include "testing/flush_to_zero.h"
#include "testing/source_path.h"

namespace embertable {
namespace {

using namespace engine_fixture;  // NOLINT: the vocabulary of these tests
using testing::AllOf;
using testing::HasSubstr;
using Json = nlohmann::json;
using Layout = InterleavedLayout;
using Tensors = std::vector<F>;

std::vector<std::span<const float>> views(const Tensors& tensors) {
  return {tensors.begin(), tensors.end()};
}

std::vector<Gradient> gradients_of(const Tensors& features) {
  std::vector<Gradient> gradients;
  for (const F& values : features) gradients.push_back({values, {}});
  return gradients;
}

struct Golden {
  explicit Golden(const Json& of) : test(of) {
    std::vector<Layout::Table> tables;
    for (const Json& table : test["tables"]) tables.push_back({table["name"], table["dim"]});
    std::vector<Layout::Feature> features;
    for (const Json& feature : test["features"])
      features.push_back({feature["name"], feature["table"], feature["max_sequence_length"]});
    std::ranges::sort(features, {}, &Layout::Feature::name);
    layout = Layout(tables, features, test["batch"]);
  }

  void expect_shapes() const {
    for (std::size_t t = 0; t < layout.tables().size(); ++t) {
      EXPECT_EQ(layout.tables()[t].num_features, test["tables"][t]["num_features"]);
      EXPECT_EQ(shape_text(layout.table_shape(static_cast<std::int64_t>(t))),
                test["received"][t]["shape"].dump());
    }
    for (std::size_t f = 0; f < layout.features().size(); ++f) {
      EXPECT_EQ(shape_text(layout.feature_shape(static_cast<std::int64_t>(f))),
                test["activations"][layout.features()[f].name]["shape"].dump());
    }
  }

  void expect_activations() const {
    Tensors received;
    for (const Json& tensor : test["received"]) received.push_back(tensor["values"].get<F>());
    const Tensors got = deinterleave(layout, views(received));
    for (std::size_t f = 0; f < got.size(); ++f)
      EXPECT_EQ(got[f], test["activations"][layout.features()[f].name]["values"].get<F>());
    EXPECT_EQ(interleave(layout, gradients_of(got)), received);
  }

  void expect_sent() const {
    Tensors values(layout.features().size());
    std::vector<Gradient> gradients(values.size());
    for (std::size_t f = 0; f < values.size(); ++f) {
      const Json& gradient = test["gradients"][layout.features()[f].name];
      if (gradient.is_null()) continue;
      values[f] = gradient["values"].get<F>();
      gradients[f] = {values[f], layout.feature_shape(static_cast<std::int64_t>(f))};
    }
    const Tensors sent = interleave(layout, gradients);
    for (std::size_t t = 0; t < sent.size(); ++t)
      EXPECT_EQ(sent[t], test["sent"][t]["values"].get<F>());
  }

  static std::string shape_text(const Shape& shape) {
    return Json(std::vector<std::int64_t>(shape.dims().begin(), shape.dims().end())).dump();
  }

  const Json& test;
  Layout layout{{{"t", 1}}, {{"f", "t", 0}}, 1};
};

TEST(Interleave, AgreesWithTensorFlow) {
  std::ifstream file(source_path("src/tensorflow/v1/testdata/interleave_cases.json"));
  const Json all = Json::parse(file);
  int nones = 0;
  for (const Json& test : all["cases"]) {
    SCOPED_TRACE(test["id"].get<std::string>());
    const Golden golden(test);
    golden.expect_shapes();
    golden.expect_activations();
    golden.expect_sent();
    for (const Json& gradient : test["gradients"]) nones += gradient.is_null() ? 1 : 0;
  }
  EXPECT_EQ(all["cases"].size(), 36U);
  EXPECT_GT(nones, 0);
}

TEST(EngineCases, Case081_ActivationsOfATableStandSampleBySample) {
  EmbeddingOptions options;
  options.revision = ApiRevision::kBatchSize;
  Embedding engine = engine_with(accelerator(), features(), sgd(0.1), options);
  const OwnedBatch batch(0);
  engine.enqueue(batch.sparse());
  const Tensors tables = interleave(interleaved_layout(engine), engine.dequeue());
  EXPECT_EQ(tables[0], (F{0, 1, 2, 3, 4, 6, 8, 10, 4, 6, 8, 10, 4, 5, 6, 7}));
  EXPECT_EQ(tables[1], (F{6, 7, 2, 3}));
}

TEST(EngineCases, Case081_ASequenceTakesConsecutiveSlots) {
  const Layout layout({{"video", 1}}, {{"watched", "video", 2}, {"favorited", "video", 0}}, 2);
  EXPECT_EQ(layout.tables()[0].num_features, 3);
  const Tensors received = {{0, 1, 2, 3, 4, 5}};
  const Tensors features = deinterleave(layout, views(received));
  EXPECT_EQ(features, (Tensors{{0, 1, 3, 4}, {2, 5}}));
  EXPECT_EQ(interleave(layout, gradients_of(features)), received);
}

TEST(InterleavedLayout, OfTheV1ApiIsSortedByName) {
  const Layout layout = Layout::sorted_by_name(
      {{"video", 2}, {"user", 1}}, {{"z", "video", 0}, {"b", "user", 0}, {"a", "video", 3}}, 4);
  EXPECT_EQ(layout.tables()[0].name, "user");
  EXPECT_EQ(layout.features()[0].name, "a");
  EXPECT_EQ(layout.features()[2].first_slot, 3);
  EXPECT_EQ(layout.tables()[1].features, (std::vector<std::int64_t>{0, 2}));
}

std::string layout_refusal(const std::vector<Layout::Table>& tables,
                           const std::vector<Layout::Feature>& features, std::int64_t batch = 2) {
  return refusal<ValueError>([&] { Layout(tables, features, batch); });
}

TEST(InterleavedLayout, SaysWhatIsWrong) {
  const std::vector<Layout::Table> one = {{"t", 4}};
  EXPECT_EQ(layout_refusal(one, {{"f", "t", 0}}, 0), "layout: batch_size must be >= 1, got 0");
  EXPECT_THAT(layout_refusal({{"t", 4}, {"t", 2}}, {{"f", "t", 0}}), HasSubstr("table 't'"));
  EXPECT_EQ(layout_refusal({{"t", 0}}, {{"f", "t", 0}}), "table 't': dim must be >= 1, got 0");
  EXPECT_EQ(layout_refusal(one, {{"f", "u", 0}}), "feature 'f': its table must be known, got 'u'");
  EXPECT_THAT(layout_refusal(one, {{"f", "t", 0}, {"f", "t", 0}}), HasSubstr("feature 'f'"));
  EXPECT_EQ(layout_refusal(one, {{"f", "t", -1}}),
            "feature 'f': max_sequence_length must be >= 0, got -1");
  EXPECT_EQ(layout_refusal({{"t", 4}, {"u", 2}}, {{"f", "t", 0}}),
            "table 'u': must have a feature, got none");
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  EXPECT_THAT(layout_refusal(one, {{"f", "t", kMost}}), HasSubstr("2^62"));
  EXPECT_THAT(layout_refusal(one, {{"f", "t", kMost}, {"g", "t", 1}}), HasSubstr("slots"));
}

TEST(Interleave, RefusesOtherSizesBeforeItWrites) {
  const Layout layout({{"t", 2}, {"u", 1}}, {{"f", "t", 3}, {"g", "u", 0}}, 2);
  const F twelve(12, 1), two(2, 1), eleven(11, 1);
  F t(12, 7), u(2, 7);
  const std::vector<std::span<float>> tables = {t, u};
  const auto refused = [&](const std::vector<Gradient>& features) {
    return refusal<ValueError>([&] { interleave(layout, features, tables); });
  };
  EXPECT_THAT(refused({{twelve, {}}}), HasSubstr("2 features, got 1"));
  EXPECT_EQ(refused({{eleven, {}}, {two, {}}}),
            "feature 'f' of table 't': must have 12 numbers, shape (2, 3, 2), got 11");
  EXPECT_EQ(refused({{twelve, {6, 2}}, {two, {}}}),
            "feature 'f' of table 't': must have shape (2, 3, 2), got (6, 2)");
  EXPECT_EQ(t, F(12, 7));
  EXPECT_EQ(refused({{twelve, {}}, {two, {2, 1, 1}}}), "");  // with the slot's axis

  const std::vector<std::span<const float>> received = {eleven, two};
  EXPECT_EQ(refusal<ValueError>([&] { deinterleave(layout, received); }),
            "table 't': must have 12 numbers, shape (6, 2), got 11");
  F small(1);
  const std::vector<std::span<const float>> good = {twelve, two};
  const std::vector<std::span<float>> features = {t, small};
  EXPECT_EQ(refusal<ValueError>([&] { deinterleave(layout, good, features); }),
            "feature 'g' of table 'u': must have 2 numbers, shape (2, 1), got 1");
}

TEST(Interleave, TakesGradientsOfDoubles) {
  const Layout layout({{"t", 1}}, {{"f", "t", 0}, {"g", "t", 0}}, 2);
  const std::vector<double> doubles = {0.1, 1e-300};
  const F floats = {3, 4};
  EXPECT_EQ(interleave(layout, std::vector<Gradient>{{doubles, {2, 1}}, {floats, {}}})[0],
            (F{0.1f, 3, 0, 4}));
}

TEST(Interleave, KeepsDenormalsOfDoublesWhereTheThreadFlushesThem) {
  const Layout layout({{"t", 1}}, {{"f", "t", 0}}, 1);
  const std::vector<double> doubles = {1e-39};
  const auto call = [&] { return interleave(layout, std::vector<Gradient>{{doubles, {1, 1}}})[0]; };
  EXPECT_EQ(std::bit_cast<std::uint32_t>(flushing_to_zero(call)[0]), 0x000ae398u);
}

/// A random layout: as many tables, features and lengths as the dice say.
Layout random_layout(std::mt19937_64& dice) {
  const auto up_to = [&](std::uint64_t most) { return static_cast<std::int64_t>(dice() % most); };
  std::vector<Layout::Table> tables;
  std::vector<Layout::Feature> features;
  for (std::int64_t t = 0; t <= up_to(4); ++t)
    tables.push_back({"t" + std::to_string(t), static_cast<std::int32_t>(1 + up_to(9))});
  const std::int64_t count = std::ssize(tables) + up_to(6);
  for (std::int64_t f = 0; f < count; ++f) {
    const std::int64_t table = f < std::ssize(tables) ? f : up_to(tables.size());
    features.push_back({"f" + std::to_string(f), tables[table].name, up_to(2) == 0 ? 0 : up_to(5)});
  }
  std::ranges::shuffle(features, dice);
  return Layout(tables, features, 1 + up_to(7));
}

/// Every number of every tensor is found by counting, once from each side.
TEST(Interleave, AtRandomEachNumberHasItsPlaceAndComesBack) {
  std::mt19937_64 dice(test_seed(7));
  for (int round = 0; round < 300; ++round) {
    const Layout layout = random_layout(dice);
    Tensors tables;
    for (std::size_t t = 0; t < layout.tables().size(); ++t) {
      tables.emplace_back(layout.table_shape(static_cast<std::int64_t>(t)).num_elements());
      std::iota(tables[t].begin(), tables[t].end(), 1000.0f * static_cast<float>(t));
    }
    const Tensors features = deinterleave(layout, views(tables));
    ASSERT_EQ(interleave(layout, gradients_of(features)), tables) << "round " << round;
    for (std::size_t f = 0; f < features.size(); ++f) {
      const Layout::PlacedFeature& placed = layout.features()[f];
      const Layout::PlacedTable& table = layout.tables()[placed.table];
      std::size_t i = 0;
      for (std::int64_t b = 0; b < layout.batch_size(); ++b) {
        for (std::int64_t l = 0; l < placed.slots; ++l) {
          for (std::int64_t c = 0; c < table.dim; ++c, ++i) {
            const std::int64_t at =
                (b * table.num_features + placed.first_slot + l) * table.dim + c;
            ASSERT_EQ(features[f][i], static_cast<float>(1000 * placed.table + at));
          }
        }
      }
    }
  }
}

TEST(InterleavedLayout, OfAnEngineHasTheOrderOfItsFeatures) {
  Embedding engine = engine_with(accelerator(2), features_with(2, 0, 3));
  EXPECT_THROW(interleaved_layout(engine), StateError);
  engine.build(2);
  const Layout layout = interleaved_layout(engine);
  EXPECT_EQ(layout.tables()[0].num_features, 3);
  EXPECT_EQ(layout.features()[2].name, "2");
  EXPECT_EQ(layout.features()[2].max_sequence_length, 3);

  // What a replica received, taken apart, is what it was given.
  const std::vector<OwnedBatch> data = owned(2);
  engine.enqueue(ragged_batches(data));
  const Activations activations = engine.dequeue();
  for (const std::int32_t replica : {0, 1}) {
    const Tensors tables = interleave(layout, activations, replica);
    const Tensors features = deinterleave(layout, views(tables));
    for (std::int64_t f = 0; f < 3; ++f) EXPECT_EQ(features[f], values(activations, f, replica));
  }

  Embedding other = engine_with(accelerator());
  other.build(three({2, 4, 1}, {2, 1}, {2, 1}));
  EXPECT_EQ(interleaved_layout(other).features()[0].max_sequence_length, 4);
  Embedding deep = engine_with(accelerator());
  deep.build(three({2, 4, 5, 1}, {2, 1}, {2, 1}));
  EXPECT_THAT(refusal<ValueError>([&] { interleaved_layout(deep); }),
              AllOf(HasSubstr("feature '0'"), HasSubstr("(2, 4, 5)")));
}

}  // namespace
}  // namespace embertable
