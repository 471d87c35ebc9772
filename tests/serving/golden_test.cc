// Lookups, plain and direct, and gradients that TensorFlow computed: testdata/README.md.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "testing/serving/lookups.h"
#include "testing/source_path.h"

namespace embertable {
namespace {

using namespace engine_fixture;  // NOLINT: tables, data and batches of the cases
using Json = nlohmann::json;

const Json& golden() {
  static const Json kAll = [] {
    std::ifstream file(source_path("tests/serving/testdata/lookup_cases.json"));
    return Json::parse(file);
  }();
  return kAll;
}

Shape shape_of(const Json& json) {
  const auto dims = json.get<Ids>();
  return Shape(std::span<const std::int64_t>(dims));
}

/// One input with its weights, owning its arrays.
struct OwnInput {
  Ids values, splits, indices;
  Shape shape;
  F weights;
  FeatureIds ids;
  FeatureWeights given;

  OwnInput(const Json& input, const Json& weight) : values(input["values"].get<Ids>()) {
    if (input.contains("shape")) shape = shape_of(input["shape"]);
    if (input["kind"] == "dense") ids = DenseIds{values, shape};
    if (input["kind"] == "ragged") {
      splits = input["row_splits"].get<Ids>();
      ids = RaggedIds{splits, values};
    }
    if (input["kind"] == "sparse") {
      for (const Json& index : input["indices"])
        for (const Json& i : index) indices.push_back(i.get<std::int64_t>());
      ids = SparseIds{indices, values, shape};
    }
    if (weight.is_null()) return;
    weights = weight["values"].get<F>();
    if (weight["kind"] == "dense") given = DenseWeights{weights};
    if (weight["kind"] == "ragged") given = RaggedWeights{weights};
    if (weight["kind"] == "sparse") given = SparseWeights{weights};
  }
  OwnInput(const OwnInput&) = delete;
  OwnInput& operator=(const OwnInput&) = delete;
};

template <class T>
Nested<T> packed(const Json& test, const std::vector<std::pair<std::string, T>>& leaves) {
  std::vector<Structure::Member> members;
  std::vector<Structure> items(leaves.size());
  std::vector<T> values;
  for (const auto& [path, leaf] : leaves) {
    members.emplace_back(path, Structure());
    values.push_back(leaf);
  }
  return {test["container"] == "map" ? Structure::map(members) : Structure::tuple(items), values};
}

/// Everything of a case that a lookup takes.
class Case {
 public:
  explicit Case(const Json& test) : test_(test) {
    for (const auto& [name, table] : golden()["tables"].items())
      values_[name] = table["values"].get<F>();
    std::vector<std::pair<std::string, FeatureConfig>> leaves;
    for (const Json& feature : test["features"])
      leaves.emplace_back(feature["path"].get<std::string>(), config_of(feature));
    features_ = std::make_unique<Nested<FeatureConfig>>(packed(test, leaves));
    for (std::size_t i = 0; i < test["inputs"].size(); ++i)
      inputs_.push_back(std::make_unique<OwnInput>(
          test["inputs"][i], i < test["weights"].size() ? test["weights"][i] : Json()));
  }

  Batch batch() const {
    std::vector<std::pair<std::string, FeatureIds>> ids;
    std::vector<std::pair<std::string, FeatureWeights>> weights;
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      const auto path = test_["inputs"][i]["path"].get<std::string>();
      ids.emplace_back(path, inputs_[i]->ids);
      weights.emplace_back(path, inputs_[i]->given);
    }
    weights.resize(test_["weights"].size());  // one case has fewer weights than inputs
    Batch batch{packed(test_, ids), {}};
    if (!test_["weights"].is_null()) batch.weights = packed(test_, weights);
    return batch;
  }
  LookupOutput look_up() const { return serving_embedding_lookup(batch(), tables_, *features_); }

  /// By TablePtr, of the case's upstream; rows beyond TensorFlow's have none.
  std::map<TablePtr, GradientSumsOfTable> gradients() const {
    const std::vector<F> kept = upstream();
    return serving_embedding_gradients(batch(), tree_of(kept), tables_, *features_);
  }

  /// Upstream gradients of every result, each of its length.
  std::vector<F> upstream() const {
    std::vector<F> all;
    if (!test_.contains("upstream")) return all;
    for (std::size_t i = 0; i < test_["upstream"].size(); ++i) {
      all.push_back(test_["upstream"][i].get<F>());
      all.back().resize(test_["results"][i]["values"].size());
    }
    return all;
  }
  Nested<Gradient> tree_of(const std::vector<F>& values) const {
    std::vector<std::pair<std::string, Gradient>> leaves;
    for (std::size_t i = 0; i < values.size(); ++i)
      leaves.emplace_back(test_["inputs"][i]["path"].get<std::string>(), Gradient{values[i], {}});
    return packed(test_, leaves);
  }

  /// An object with the case's rows.
  DirectEmbedding direct() const {
    DirectEmbedding made(*features_, std::nullopt, accelerator());
    for (const auto& [config, view] : made.embedding_tables())
      for (std::int64_t row = 0; row < view.rows; ++row)
        std::copy_n(values_.at(*config->name).data() + row * view.dim, view.dim,
                    view.data + row * view.row_stride);
    return made;
  }
  LookupOutput look_up_directly() const { return direct().embedding_lookup(batch()); }

 private:
  FeatureConfig config_of(const Json& feature) {
    const auto name = feature["table"].get<std::string>();
    const auto combiner = feature["combiner"].get<std::string>();
    TablePtr& table = configs_[name + combiner];
    if (!table) {
      const Json& values = golden()["tables"][name];
      TableConfig config;
      config.vocabulary_size = values["rows"].get<std::int64_t>();
      config.dim = values["dim"].get<std::int32_t>();
      config.combiner = parse_combiner(combiner);
      config.name = name;
      table = make_table(config);
      if (!is_missing(name))
        tables_[table] = {values_[name].data(), config.vocabulary_size, config.dim, config.dim};
    }
    FeatureConfig config = engine_fixture::feature(table, feature["max_sequence_length"]);
    config.validate_weights_and_indices = feature["validate"];
    if (!feature["output_shape"].is_null()) config.output_shape = shape_of(feature["output_shape"]);
    return config;
  }
  bool is_missing(const std::string& name) const {
    if (!test_.contains("missing_tables")) return false;
    const auto missing = test_["missing_tables"].get<std::vector<std::string>>();
    return std::ranges::find(missing, name) != missing.end();
  }

  const Json& test_;
  std::map<std::string, F> values_;
  std::map<std::string, TablePtr> configs_;
  std::map<TablePtr, TableView> tables_;
  std::unique_ptr<Nested<FeatureConfig>> features_;
  std::vector<std::unique_ptr<OwnInput>> inputs_;
};

/// The class of what a call throws.
template <class Call>
std::string error_of(Call call) {
  try {
    call();
  } catch (const DataError&) {
    return "DataError";
  } catch (const ValueError&) {
    return "ValueError";
  } catch (const TypeError&) {
    return "TypeError";
  } catch (const KeyError&) {
    return "KeyError";
  }
  return "none";
}

void expect_near_golden(std::span<const float> got, const std::vector<double>& want) {
  const double rtol = golden()["tolerance"]["rtol"], atol = golden()["tolerance"]["atol"];
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t k = 0; k < want.size(); ++k)
    EXPECT_NEAR(got[k], want[k], atol + rtol * std::abs(want[k])) << "element " << k;
}

void expect_results(const LookupOutput& output, const Json& results) {
  ASSERT_EQ(output.size(), static_cast<std::int64_t>(results.size()));
  for (std::size_t i = 0; i < results.size(); ++i) {
    const Activation& got = output(static_cast<std::int64_t>(i));
    EXPECT_EQ(got.shape, shape_of(results[i]["shape"]));
    expect_near_golden(got.values, results[i]["values"].get<std::vector<double>>());
  }
}

/// Gradients of tables by configuration against dense ones by name.
void expect_gradients(const std::map<TablePtr, GradientSumsOfTable>& got, const Json& want) {
  std::map<std::string, F> dense;
  for (const auto& [table, gradient] : got) {
    F& sum = dense[*table->name];
    sum.resize(table->vocabulary_size * table->dim);
    for (std::size_t i = 0; i < gradient.sums.size(); ++i) {
      const std::size_t dim = table->dim;
      sum[static_cast<std::size_t>(gradient.ids[i / dim]) * dim + i % dim] += gradient.sums[i];
    }
  }
  ASSERT_EQ(dense.size(), want.size());
  for (const auto& [name, values] : want.items())
    expect_near_golden(dense.at(name), values.get<std::vector<double>>());
}

bool is_of_another_rank(const Json& test) {
  return test["inputs"].size() == 1 && test["inputs"][0].contains("rank");
}

TEST(ServingGolden, GivesWhatTensorFlowGives) {
  int checked = 0, gradients = 0;
  for (const Json& test : golden()["cases"]) {
    SCOPED_TRACE(test["id"].get<std::string>());
    if (is_of_another_rank(test)) {
      EXPECT_EQ(test["error"], "ValueError");  // RaggedIds have no other rank than 2
      continue;
    }
    const Case made(test);
    ++checked;
    if (test.contains("error")) {
      EXPECT_EQ(error_of([&] { made.look_up(); }), test["error"].get<std::string>());
      EXPECT_EQ(error_of([&] { made.gradients(); }), test["error"].get<std::string>());
      continue;
    }
    expect_results(made.look_up(), test["results"]);
    if (!test.contains("gradients")) continue;
    expect_gradients(made.gradients(), test["gradients"]);
    ++gradients;
  }
  EXPECT_EQ(checked, 262);
  EXPECT_EQ(gradients, 231);
}

/// Cases of one feature, which TensorFlow's class for direct lookups was given too.
TEST(DirectGolden, GivesWhatTensorFlowGives) {
  int checked = 0, different = 0, gradients = 0;
  for (const Json& test : golden()["cases"]) {
    SCOPED_TRACE(test["id"].get<std::string>());
    if (is_of_another_rank(test) || test["features"].size() > 1 || test["container"] == "map" ||
        test.contains("missing_tables"))
      continue;
    const Case made(test);
    const Json& answer = test.contains("v0") ? test["v0"] : test;
    ++checked;
    different += test.contains("v0");
    if (answer.contains("error")) {
      EXPECT_EQ(error_of([&] { made.look_up_directly(); }), answer["error"].get<std::string>());
      continue;
    }
    DirectEmbedding direct = made.direct();
    const LookupOutput output = direct.embedding_lookup(made.batch());
    expect_results(output, answer["results"]);
    if (test.contains("v0") || !test.contains("gradients")) continue;
    const std::vector<F> upstream = made.upstream();
    const Nested<Gradient> tree = made.tree_of(upstream);
    expect_gradients(direct.gradients({&output, 1}, {&tree, 1}), test["gradients"]);
    ++gradients;
  }
  EXPECT_EQ(checked, 232);
  EXPECT_EQ(different, 69);
  EXPECT_EQ(gradients, 139);
}

}  // namespace
}  // namespace embertable
