// Plain lookups that TensorFlow computed: testdata/README.md.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/serving/lookups.h"

namespace embertable {
namespace {

using namespace engine_fixture;  // NOLINT: tables, data and batches of the cases
using Json = nlohmann::json;

const Json& golden() {
  static const Json kAll = [] {
    std::ifstream file(EMBERTABLE_SOURCE_DIR "/tests/serving/testdata/lookup_cases.json");
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

  LookupOutput look_up() const {
    std::vector<std::pair<std::string, FeatureIds>> ids;
    std::vector<std::pair<std::string, FeatureWeights>> weights;
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      const auto path = test_["inputs"][i]["path"].get<std::string>();
      ids.emplace_back(path, inputs_[i]->ids);
      weights.emplace_back(path, inputs_[i]->given);
    }
    weights.resize(test_["weights"].size());  // of fewer than the inputs in one case
    Batch batch{packed(test_, ids), {}};
    if (!test_["weights"].is_null()) batch.weights = packed(test_, weights);
    return serving_embedding_lookup(batch, tables_, *features_);
  }

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

/// The class of what the lookup throws.
std::string error_of(const Case& test) {
  try {
    test.look_up();
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

void expect_results(const Case& test, const Json& results) {
  const double rtol = golden()["tolerance"]["rtol"], atol = golden()["tolerance"]["atol"];
  const LookupOutput output = test.look_up();
  ASSERT_EQ(output.size(), static_cast<std::int64_t>(results.size()));
  for (std::size_t i = 0; i < results.size(); ++i) {
    const auto leaf = static_cast<std::int64_t>(i);
    EXPECT_EQ(output(leaf).shape, shape_of(results[i]["shape"]));
    const auto want = results[i]["values"].get<std::vector<double>>();
    const F got = values_of(output, leaf);
    ASSERT_EQ(got.size(), want.size());
    for (std::size_t k = 0; k < want.size(); ++k)
      EXPECT_NEAR(got[k], want[k], atol + rtol * std::abs(want[k])) << "element " << k;
  }
}

TEST(ServingGolden, GivesWhatTensorFlowGives) {
  int checked = 0;
  for (const Json& test : golden()["cases"]) {
    SCOPED_TRACE(test["id"].get<std::string>());
    if (test["inputs"].size() == 1 && test["inputs"][0].contains("rank")) {
      EXPECT_EQ(test["error"], "ValueError");  // RaggedIds have no other rank than 2
      continue;
    }
    const Case made(test);
    if (test.contains("error"))
      EXPECT_EQ(error_of(made), test["error"].get<std::string>());
    else
      expect_results(made, test["results"]);
    ++checked;
  }
  EXPECT_EQ(checked, 262);
}

}  // namespace
}  // namespace embertable
