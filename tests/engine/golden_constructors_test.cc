// What TensorFlow's constructors refuse: src/tensorflow/wire/testdata/README.md.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "testing/engine/golden_configurations.h"
#include "testing/refusal.h"

namespace embertable {
namespace {

using namespace golden_configurations;  // NOLINT: what it is all about

/// What C++ does not compile: numbers that are no integers, an initializer, a slot function or a
/// flag that is a number, a combiner that is none, limits of (None, None), which are no limits, a
/// dim of -1, which is an unknown one.
bool is_not_expressible(const Json& args) {
  for (const char* whole : {"vocabulary_size", "dim", "max_sequence_length"}) {
    if (args.contains(whole) && !args[whole].is_number_integer()) return true;
  }
  const bool a_number_for_a_flag = args.contains("validate_weights_and_indices");
  return args.contains("initializer") || args.contains("slot_variable_creation_fn") ||
         a_number_for_a_flag || args.value("combiner", Json("sum")).is_number() ||
         args.value("clipvalue", Json()) == Json{nullptr, nullptr} ||
         args.value("output_shape", Json()) == Json{-1};
}

/// What is accepted there and refused here: rates below 0, inverted limits, strengths, powers and
/// decays outside their ranges.
const std::set<Json> kRefusedHere = {
    {{"learning_rate", -1}},
    {{"clipvalue", -1}},
    {{"clip_weight_min", 2}, {"clip_weight_max", 1}},
    {{"learning_rate_power", 0.1}},
    {{"l1_regularization_strength", -1}},
    {{"momentum", -3}, {"beta2", 7}},
};

/// The other way round: v1 documents that accumulators may then start at zero.
const std::set<Json> kAcceptedHere = {
    {{"initial_accumulator_value", 0}, {"allow_zero_accumulator", true}}};

TableConfig table_of(const Json& args) {
  TableConfig table = {.vocabulary_size = args.value("vocabulary_size", std::int64_t{2}),
                       .dim = args.value("dim", 4)};
  if (args.contains("name")) table.name = args["name"];
  validate(table);  // fields in their order; a combiner is parsed from its name before there is one
  table.combiner = parse_combiner(args.value("combiner", "mean"));
  return table;
}

void construct(const std::string& type, const Json& args) {
  if (type == "TableConfig") {
    make_table(table_of(args));
  } else if (type == "FeatureConfig") {
    validate(FeatureConfig{.table = make_table(table_of(Json::object())),
                           .max_sequence_length = args.value("max_sequence_length", 0),
                           .output_shape = shape_of(args.value("output_shape", Json()))});
  } else if (type == "QuantizationConfig") {
    validate(QuantizationConfig{args["num_buckets"], args["lower"], args["upper"]});
  } else {
    Functions none;
    optimizer_of({{"class", type}, {"args", args}}, none);
  }
}

std::string golden_constructors_refusal(const Json& wanted) {
  return refusal<ValueError>([&] { construct(wanted["class"], wanted["args"]); });
}

TEST(Golden, ConstructorsRefuseWhatTheOriginalsRefuse) {
  int compared = 0, not_expressible = 0;
  for (const Json& wanted : wire::golden()["constructors"]) {
    const Json& args = wanted["args"];
    if (is_not_expressible(args)) {
      ++not_expressible;
      continue;
    }
    ++compared;
    const std::string text = golden_constructors_refusal(wanted);
    const bool refused =
        wanted.contains("error") ? !kAcceptedHere.contains(args) : kRefusedHere.contains(args);
    EXPECT_EQ(!text.empty(), refused) << wanted << "\n" << text;
    if (!refused) continue;
    for (const Json& name : wanted.value("names", Json::array()))
      EXPECT_THAT(text, testing::HasSubstr(name.get<std::string>())) << wanted;
  }
  EXPECT_EQ(compared, 70);
  EXPECT_EQ(not_expressible, 19);
}

}  // namespace
}  // namespace embertable
