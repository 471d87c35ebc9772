#include "embertable/variables/variable_creator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "embertable/embedding.h"
#include "embertable/errors.h"
#include "embertable/tensorflow/parameters.h"
#include "testing/refusal.h"
#include "testing/tensors.h"

namespace embertable {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Nodes = std::vector<std::int32_t>;

std::vector<Floats> values_of(const ShardedVariable& variable) {
  std::vector<Floats> values;
  for (const Variable& component : variable) values.push_back(floats_of(component.value()));
  return values;
}
std::vector<std::string> names_of(const ShardedVariable& variable) {
  std::vector<std::string> names;
  for (const Variable& component : variable) names.push_back(component.name());
  return names;
}

VariableCreator creator(std::int32_t nodes, Partitioner partitioner) {
  return VariableCreator({.storage_nodes = nodes, .variable_partitioner = std::move(partitioner)});
}

TEST(ShardedCases, Case08_TwoPartsOnTwoNodes) {
  VariableCreator made = creator(2, FixedShardsPartitioner(2));
  const CreatedVariable first = made.create(counting({5, 2}), {.name = "a"});
  EXPECT_EQ(values_of(first.sharded()), (std::vector<Floats>{{0, 1, 2, 3, 4, 5}, {6, 7, 8, 9}}));
  EXPECT_EQ(first.nodes, (Nodes{0, 1}));
  EXPECT_THAT(names_of(first.sharded()), ElementsAre("a/part_0", "a/part_1"));
  EXPECT_EQ(first.sharded().name(), "a");
  const CreatedVariable second = made.create(counting({6, 1}));
  EXPECT_EQ(values_of(second.sharded()), (std::vector<Floats>{{0, 1, 2}, {3, 4, 5}}));
  EXPECT_EQ(second.nodes, (Nodes{0, 1}));
}

TEST(ShardedCases, Case09_FourPartsOnTwoNodesByTurns) {
  const CreatedVariable made = creator(2, FixedShardsPartitioner(4)).create(counting({10}));
  EXPECT_EQ(values_of(made.sharded()), (std::vector<Floats>{{0, 1, 2}, {3, 4, 5}, {6, 7}, {8, 9}}));
  EXPECT_EQ(made.nodes, (Nodes{0, 1, 0, 1}));
  EXPECT_THAT(made.sharded().offsets(), ElementsAre(0, 3, 6, 8, 10));
}

TEST(ShardedCases, Case10_NoMorePartsThanRows) {
  const CreatedVariable made = creator(2, FixedShardsPartitioner(4)).create(counting({3}));
  EXPECT_EQ(values_of(made.sharded()), (std::vector<Floats>{{0}, {1}, {2}}));
}

TEST(ShardedCases, Case11_OnePartIsAPlainVariable) {
  const Int64s ten(10, 7);
  const CreatedVariable made =
      creator(2, MinSizePartitioner(64 << 20, 2)).create(ints(ten), {.name = "x"});
  ASSERT_FALSE(made.is_sharded());
  EXPECT_EQ(made.whole().name(), "x");
  EXPECT_EQ(made.whole().dtype(), DType::kInt64);
  EXPECT_EQ(elements<std::int64_t>(made.whole().value()), ten);
  EXPECT_EQ(made.nodes, (Nodes{0}));
}

TEST(ShardedCases, Case12_ColocatedVariablesAndScalarsAreNotCut) {
  VariableCreator made = creator(3, FixedShardsPartitioner(2));
  EXPECT_EQ(made.create(Tensor::scalar(1.0f)).nodes, (Nodes{0}));
  const CreatedVariable beside = made.create(counting({4, 2}), {.colocate_with = 2});
  EXPECT_FALSE(beside.is_sharded());
  EXPECT_EQ(beside.nodes, (Nodes{2}));
  EXPECT_EQ(made.create(counting({4})).nodes,
            (Nodes{1, 2}));  // the variables beside it took no turn
}

TEST(ShardedCases, Case13_CountsThatCannotBeFollowedAreRefused) {
  const auto why = [](std::vector<std::int64_t> counts) {
    return refusal<ValueError>([&] {
      creator(1, [&](const Shape&, ElementBytes, int) {
        return counts;
      }).create(counting({4, 2, 3}), {.name = "x"});
    });
  };
  EXPECT_EQ(why({}),
            "variable 'x': variable_partitioner must give a count >= 1 for axis 0 and 1 for every "
            "other axis of shape (4, 2, 3), got []");
  EXPECT_THAT(why({0, 1, 1}), HasSubstr("variable_partitioner"));
  EXPECT_THAT(why({2, 2, 1}), HasSubstr("got [2, 2, 1]"));
  EXPECT_THAT(why({-2, 1, 1}), HasSubstr("got [-2, 1, 1]"));
  EXPECT_EQ(why({2, 1, 1}), "");
}

TEST(ShardedCases, Case14_AFunctionThatKnowsItsPart) {
  const auto identity = [](const VariablePart& part) {
    Tensor rows(DType::kFloat32, part.shape);
    for (std::int64_t r = 0; r < part.shape[0]; ++r)
      rows.mutable_values<float>()[r * 4 + part.offset[0] + r] = 1;
    return rows;
  };
  const CreatedVariable made = creator(1, FixedShardsPartitioner(2))
                                   .create(InitialValue::parts({4, 4}, DType::kFloat32, identity));
  EXPECT_EQ(values_of(made.sharded()),
            (std::vector<Floats>{{1, 0, 0, 0, 0, 1, 0, 0}, {0, 0, 1, 0, 0, 0, 0, 1}}));
}

TEST(InitialValue, SaysItsShapeAndDtypeUnlessItMustBeCalled) {
  const Tensor value(DType::kInt32, {4});
  const InitialValue parts =
      InitialValue::parts({5, 2}, DType::kFloat64, [&](const VariablePart&) { return value; });
  EXPECT_EQ(parts.shape(), (Shape{5, 2}));
  EXPECT_EQ(parts.dtype(), DType::kFloat64);
  EXPECT_EQ(InitialValue(value).shape(), (Shape{4}));
  EXPECT_EQ(InitialValue(value).dtype(), DType::kInt32);
  const InitialValue whole = InitialValue::whole([&] { return value; });
  EXPECT_FALSE(whole.shape().has_rank());
  EXPECT_FALSE(whole.dtype().has_value());
}

TEST(VariableCreator, CallsAFunctionOfTheWholeOnceAndCutsWhatItGives) {
  int calls = 0;
  const InitialValue whole = InitialValue::whole([&] {
    ++calls;
    return counting({5});
  });
  const CreatedVariable made = creator(1, FixedShardsPartitioner(2)).create(whole);
  EXPECT_EQ(values_of(made.sharded()), (std::vector<Floats>{{0, 1, 2}, {3, 4}}));
  EXPECT_EQ(calls, 1);
}

TEST(VariableCreator, TellsAFunctionWhereItsPartLies) {
  std::vector<std::string> parts;
  const auto record = [&](const VariablePart& part) {
    parts.push_back(part.name + " " + part.full_shape.to_string() + " from " +
                    std::to_string(part.offset[0]) + "," + std::to_string(part.offset[1]) + ": " +
                    part.shape.to_string());
    return Tensor(DType::kInt32, part.shape);
  };
  creator(1, FixedShardsPartitioner(3))
      .create(InitialValue::parts({5, 2}, DType::kInt32, record), {.name = "x"});
  EXPECT_THAT(parts, ElementsAre("x (5, 2) from 0,0: (2, 2)", "x (5, 2) from 2,0: (2, 2)",
                                 "x (5, 2) from 4,0: (1, 2)"));
}

TEST(VariableCreator, RefusesAPartOfAnotherShapeOrDtypeAndTakesNoTurn) {
  VariableCreator made = creator(2, FixedShardsPartitioner(2));
  const auto give = [](const Tensor& value) {
    return InitialValue::parts({4}, DType::kFloat32,
                               [value](const VariablePart&) { return value; });
  };
  EXPECT_EQ(refusal<ValueError>([&] { made.create(give(counting({3})), {.name = "x"}); }),
            "variable 'x': its initial value at [0] must be float32 of shape (2), got float32 of "
            "shape (3)");
  EXPECT_THAT(refusal<ValueError>([&] {
                made.create(give(ints({1, 2})));
              }),
              HasSubstr("got int64 of shape (2)"));
  EXPECT_EQ(made.create(counting({1})).nodes, (Nodes{0}));
}

TEST(VariableCreator, RefusesNodesThatAreNotThere) {
  EXPECT_EQ(refusal<ValueError>([] { VariableCreator({.storage_nodes = 0}); }),
            "VariableCreator: storage_nodes must be >= 1, got 0");
  EXPECT_EQ(refusal<ValueError>(
                [] { VariableCreator().create(counting({2}), {.name = "x", .colocate_with = 1}); }),
            "variable 'x': colocate_with must be 0 <= node < 1, got 1");
}

TEST(VariableCreator, KeepsNothingOfAnArrayThatItWasGiven) {
  Floats mine = {1, 2, 3};
  const Tensor wrapped = Tensor::wrap(mine.data(), DType::kFloat32, {3}, nullptr);
  const CreatedVariable made = VariableCreator().create(wrapped);
  mine[0] = 9;
  EXPECT_EQ(floats_of(made.whole().value()), (Floats{1, 2, 3}));
}

TEST(VariableCreator, HasTheFirstValuesOfAnEnginesTable) {
  const Initializer normal = Initializer::normal(0, 1, 3);
  const TablePtr table =
      make_table({.vocabulary_size = 11, .dim = 3, .initializer = normal, .name = "films"});
  Embedding engine(Nested<FeatureConfig>(FeatureConfig{.table = table}), Optimizer("sgd", 0.1),
                   nullptr, {.seed = 5});
  const TableView rows = engine.embedding_tables().at(table);
  const CreatedVariable made = creator(1, FixedShardsPartitioner(4))
                                   .create(InitialValue::of(normal, {11, 3}, 5), {.name = "films"});
  const Floats values = floats_of(made.sharded().value());
  for (std::int64_t row = 0; row < 11; ++row)
    for (std::int64_t column = 0; column < 3; ++column)
      ASSERT_EQ(values[row * 3 + column], rows.data[row * rows.row_stride + column]);
}

InitialValue row_numbers(const Shape& shape) {
  return InitialValue::of(Initializer::row_id(), shape);
}

TEST(ShardedCases, Case69_OneComponentForEachHost) {
  const ShardedVariable made = create_on_hosts(row_numbers({10, 2}), 4, "x");
  EXPECT_THAT(names_of(made), ElementsAre("x_0", "x_1", "x_2", "x_3"));
  EXPECT_THAT(made.offsets(), ElementsAre(0, 3, 6, 8, 10));
  EXPECT_EQ(floats_of(made.variables()[2].value()), (Floats{6, 6, 7, 7}));
}

TEST(ShardedCases, Case70_HostsBeyondTheRowsHaveNone) {
  const ShardedVariable made = create_on_hosts(row_numbers({3, 2}), 5, "x");
  EXPECT_THAT(names_of(made), ElementsAre("x_0", "x_1", "x_2"));
  EXPECT_EQ(values_of(made), (std::vector<Floats>{{0, 0}, {1, 1}, {2, 2}}));
}

TEST(ShardedCases, Case71_TheTableIsTheSameForAnyNumberOfHosts) {
  const InitialValue random = InitialValue::of(Initializer::uniform(0, 1, 9), {13, 5});
  const Tensor one = create_on_hosts(random, 1, "x").value();
  for (const std::int32_t hosts : {2, 3, 7})
    EXPECT_TRUE(identical(create_on_hosts(random, hosts, "x").value(), one)) << hosts;
  EXPECT_FALSE(identical(create_on_hosts(random, 1, "y").value(), one));
}

TEST(ShardedCases, Case72_AValueIsNoFunction) {
  EXPECT_THAT(refusal<ValueError>([] {
                create_on_hosts(counting({4, 2}), 2, "x");
              }),
              HasSubstr("Unable to extract initializer function and shape"));
  EXPECT_EQ(refusal<ValueError>([] { create_on_hosts(row_numbers({4}), 2, "x"); }),
            "variable 'x': a table must have rank 2 and a row at least, got shape (4)");
  EXPECT_EQ(refusal<ValueError>([] {
              create_on_hosts(row_numbers({4, 2}), 0, "x");
            }),
            "variable 'x': hosts must be >= 1, got 0");
}

}  // namespace
}  // namespace embertable
