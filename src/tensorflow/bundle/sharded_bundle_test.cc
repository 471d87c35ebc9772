// Sharded variables in tensor bundles: any shards to any others.
#include "embertable/tensorflow/sharded_bundle.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <numeric>

#include "base/random.h"
#include "embertable/errors.h"
#include "embertable/tensorflow/object_graph.h"
#include "testing/executor.h"
#include "testing/memory_files.h"
#include "testing/refusal.h"
#include "testing/temporary_directory.h"

namespace embertable {
namespace {

using checkpoint::MemoryFiles;
using Floats = std::vector<float>;

/// Rows of one number, one vector for each component.
ShardedVariable sharded(const std::vector<Floats>& parts) {
  std::vector<Variable> components;
  for (const Floats& part : parts)
    components.emplace_back(Tensor::of<float>(part, {std::ssize(part)}));
  return ShardedVariable(std::move(components));
}

ShardedVariable zeros(const std::vector<std::int64_t>& sizes, DType dtype = DType::kFloat32,
                      const std::vector<std::int64_t>& tail = {}) {
  std::vector<Variable> components;
  for (const std::int64_t rows : sizes) {
    std::vector<std::int64_t> dims = {rows};
    dims.insert(dims.end(), tail.begin(), tail.end());
    components.emplace_back(Tensor(dtype, Shape(dims)));
  }
  return ShardedVariable(std::move(components));
}

Floats values(const ShardedVariable& variable) {
  const Tensor all = variable.value();
  return {all.values<float>().begin(), all.values<float>().end()};
}

void save(MemoryFiles& files, const ShardedVariable& variable) {
  TensorBundleWriter writer(files, "/b");
  add(writer, "v", variable);
  writer.finish();
}

Floats restored(MemoryFiles& files, ShardedVariable into) {
  restore(TensorBundleReader(files, "/b"), {{"v", into}});
  return values(into);
}

TEST(ShardedCases, Case73_WhatChangedAfterTheSaveComesBack) {
  MemoryFiles files;
  ShardedVariable variable = sharded({{0}, {1}, {2}, {3}});
  save(files, variable);
  Variable first = variable.variables()[0];
  first.assign(Tensor::of<float>({4}, {1}));
  EXPECT_EQ(values(variable), (Floats{4, 1, 2, 3}));
  EXPECT_EQ(restored(files, variable), (Floats{0, 1, 2, 3}));
}

TEST(ShardedCases, Case74_FourShardsToOneAndBack) {
  MemoryFiles files, other;
  save(files, sharded({{0}, {1}, {2}, {3}}));
  EXPECT_EQ(restored(files, zeros({4})), (Floats{0, 1, 2, 3}));
  save(other, sharded({{5, 10, 15, 20}}));
  EXPECT_TRUE(TensorBundleReader(other, "/b").describe("v").slices.empty());
  EXPECT_EQ(restored(other, zeros({1, 1, 1, 1})), (Floats{5, 10, 15, 20}));
}

TEST(ShardedCases, Case75_FourShardsToTwo) {
  MemoryFiles files;
  save(files, sharded({{0}, {1}, {2}, {3}}));
  EXPECT_EQ(restored(files, zeros({2, 2})), (Floats{0, 1, 2, 3}));
}

// The reader waits for variables that are made later, with the shards that they then have.
TEST(ShardedCases, Case76_VariablesThatAreMadeAfterTheReader) {
  MemoryFiles four, two;
  save(four, sharded({{0}, {1}, {2}, {3}}));
  save(two, sharded({{1, 2}, {3, 4}}));
  const TensorBundleReader of_four(four, "/b"), of_two(two, "/b");
  for (const std::vector<std::int64_t>& sizes : {std::vector<std::int64_t>{1, 1, 1, 1}, {2, 2}}) {
    ShardedVariable late = zeros(sizes);
    restore(of_four, {{"v", late}});
    EXPECT_EQ(values(late), (Floats{0, 1, 2, 3}));
  }
  ShardedVariable late = zeros({1, 1, 1, 1});
  restore(of_two, {{"v", late}});
  EXPECT_EQ(values(late), (Floats{1, 2, 3, 4}));
}

/// Sizes of up to 5 components, some 0, of `rows` rows.
std::vector<std::int64_t> random_sizes(std::uint64_t seed, std::uint64_t place, std::int64_t rows) {
  std::vector<std::int64_t> sizes(1 + uniform_below(random_bits(test_seed(5), seed, place), 5));
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::uint64_t bits =
        random_bits(test_seed(6), seed, static_cast<std::uint64_t>(row), place);
    ++sizes[uniform_below(bits,
                          sizes.size() > 1 ? sizes.size() - uniform_below(bits >> 32, 2) : 1)];
  }
  return sizes;
}

/// The same bytes in rising order in any dtype.
void number(ShardedVariable& variable, unsigned first) {
  for (Variable component : variable.variables()) {
    Tensor value(component.dtype(), component.shape());
    for (std::byte& byte : value.mutable_bytes())
      byte = static_cast<std::byte>(component.dtype() == DType::kBool ? first++ % 2 : first++ * 7);
    component.assign(value);
  }
}

// Two variables, as a table and a slot, through any layouts.
TEST(ShardedCases, Case77_AnyShardsComeBackAsAnyOthers) {
  const std::vector<std::int64_t> tails[] = {{}, {3}, {2, 2}};
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    const auto rows =
        static_cast<std::int64_t>(uniform_below(random_bits(test_seed(4), seed, 0), 9));
    const DType dtype = kDTypes[seed % kDTypes.size()];
    const auto& tail = tails[seed % 3];
    ShardedVariable table = zeros(random_sizes(seed, 0, rows), dtype, tail);
    ShardedVariable slot = zeros(random_sizes(seed, 0, rows), dtype, tail);
    number(table, 1);
    number(slot, 100);
    MemoryFiles files;
    TensorBundleWriter writer(files, "/b");
    add(writer, "table", table);
    add(writer, "table.Sslot", slot);
    writer.finish();
    const ShardedVariable new_table = zeros(random_sizes(seed, 1, rows), dtype, tail);
    const ShardedVariable new_slot = zeros(random_sizes(seed, 2, rows), dtype, tail);
    restore(TensorBundleReader(files, "/b"), {{"table", new_table}, {"table.Sslot", new_slot}});
    EXPECT_TRUE(identical(new_table.value(), table.value())) << seed;
    EXPECT_TRUE(identical(new_slot.value(), slot.value())) << seed;
  }
}

TEST(ShardedBundle, SlicesAreThoseOfTheComponents) {
  MemoryFiles files;
  save(files, zeros({5, 0, 4, 4}, DType::kFloat32, {5}));
  const BundleTensor tensor = TensorBundleReader(files, "/b").describe("v");
  std::vector<std::string> specs;
  for (const TensorSlice& slice : tensor.slices) specs.push_back(to_string({tensor.shape, slice}));
  EXPECT_EQ(specs, (std::vector<std::string>{"13 5 0,5:0,5", "13 5 5,4:0,5", "13 5 9,4:0,5"}));
}

TEST(ShardedBundle, WhatDoesNotFitChangesNothing) {
  MemoryFiles files;
  save(files, sharded({{1, 2}, {3, 4}}));
  const TensorBundleReader reader(files, "/b");
  const ShardedVariable longer = zeros({2, 3}), wider = zeros({4}, DType::kFloat64);
  EXPECT_THROW(restore(reader, {{"v", longer}}), ValueError);
  EXPECT_THROW(restore(reader, {{"v", wider}}), ValueError);
  const ShardedVariable fits = zeros({4});
  EXPECT_THROW(restore(reader, {{"v", fits}, {"w", fits}}), KeyError);
  EXPECT_EQ(values(fits), Floats(4));
  std::string& data = *files.contents().at("/b.data-00000-of-00001");
  data.back() = static_cast<char>(data.back() ^ 1);
  EXPECT_THROW(restore(TensorBundleReader(files, "/b"), {{"v", fits}}), DataLoss);
  EXPECT_EQ(values(fits), Floats(4));
}

TEST(ShardedBundle, ADamagedVariableKeepsTheOthersAsTheyWere) {
  MemoryFiles files;
  TensorBundleWriter writer(files, "/b");
  add(writer, "first", sharded({{1, 2}, {3}}));
  add(writer, "second", sharded({{4}, {5, 6}}));
  writer.finish();
  std::string& data = *files.contents().at("/b.data-00000-of-00001");
  data.back() = static_cast<char>(data.back() ^ 1);
  const ShardedVariable first = zeros({3}), second = zeros({2, 1});
  const TensorBundleReader reader(files, "/b");
  EXPECT_THROW(restore(reader, {{"first", first}, {"second", second}}), DataLoss);
  EXPECT_EQ(values(first), Floats(3));
  restore(reader, {{"first", first}});
  EXPECT_EQ(values(first), (Floats{1, 2, 3}));
}

TEST(ShardedBundle, RowsThatStandApartAreWrittenWithoutGaps) {
  const Floats memory = {1, 2, -1, -1, 3, 4, -1, -1, 5, 6, -1, -1};
  VariableMemory apart;
  apart.data = const_cast<float*>(memory.data());
  apart.shape = {3, 2};
  apart.row_stride = 16;
  MemoryFiles files;
  const ShardedVariable variable({Variable::over(apart)});
  save(files, variable);
  const TensorBundleReader reader(files, "/b");
  const Tensor read = reader.read_tensor("v");
  EXPECT_EQ(Floats(read.values<float>().begin(), read.values<float>().end()),
            (Floats{1, 2, 3, 4, 5, 6}));
}

TEST(ShardedBundle, SaysWhichComponentIsReadOnlyAsAnAssignmentDoes) {
  MemoryFiles files;
  save(files, sharded({{1, 2}, {3}}));
  const TensorBundleReader reader(files, "/b");
  Floats memory = {7};
  const Variable fixed =
      Variable::over({.data = memory.data(), .shape = {1}, .row_stride = 4}, "rows_1");
  ShardedVariable table({Variable(Tensor(DType::kFloat32, {2})), fixed}, {.name = "table"});
  const std::string assigned =
      refusal<StateError>([&] { table.assign(Tensor(DType::kFloat32, {3})); });
  EXPECT_EQ(assigned, "sharded variable 'table': component 1 ('rows_1') is read-only");
  EXPECT_EQ(refusal<StateError>([&] {
              restore(reader, {{"v", table}});
            }),
            "restore of 'v': " + assigned);
  EXPECT_EQ(values(table), (Floats{0, 0, 7}));
  MemoryFiles one;
  save(one, sharded({{5}}));
  EXPECT_EQ(refusal<StateError>([&] {
              restore(TensorBundleReader(one, "/b"), {{"v", fixed}});
            }),
            "restore of 'v': variable 'rows_1': is read-only");
}

TEST(ShardedBundle, CheckpointsHaveAGraphAndACounter) {
  const TemporaryDirectory directory;
  const auto prefix = directory.path() / "ckpt-1";
  save_tensor_bundle(prefix, {{"a.b/c", sharded({{1}, {2}})}, {"s", sharded({{3}})}});
  const TensorBundleReader reader(prefix);
  EXPECT_EQ(reader.keys(),
            (std::vector<std::string>{
                "_CHECKPOINTABLE_OBJECT_GRAPH", "a..b.Sc/.ATTRIBUTES/VARIABLE_VALUE",
                "s/.ATTRIBUTES/VARIABLE_VALUE", "save_counter/.ATTRIBUTES/VARIABLE_VALUE"}));
  const ObjectGraph graph =
      parse_object_graph(reader.read_strings(std::string(kObjectGraphKey))[0]);
  EXPECT_EQ(graph.nodes[0].children,
            (std::vector<ObjectGraph::Child>{{1, "a.b/c"}, {2, "s"}, {3, "save_counter"}}));
  const ShardedVariable other = zeros({2});
  restore_tensor_bundle(prefix, {{"a.b/c", other}});
  EXPECT_EQ(values(other), (Floats{1, 2}));
  EXPECT_THROW(save_tensor_bundle(prefix, {{"save_counter", other}}), ValueError);
}

TEST(ShardedBundle, VariablesOfObjectsHaveObjectsInTheGraph) {
  const TemporaryDirectory directory;
  const auto prefix = directory.path() / "ckpt-1";
  const VariablesOfObjects variables = {{{"model", "s"}, sharded({{1}, {2}})},
                                        {{"model", "deep", "t/u"}, sharded({{3}})}};
  save_tensor_bundle(prefix, variables);
  const TensorBundleReader reader(prefix);
  EXPECT_TRUE(reader.contains("model/s/.ATTRIBUTES/VARIABLE_VALUE"));
  EXPECT_TRUE(reader.contains("model/deep/t.Su/.ATTRIBUTES/VARIABLE_VALUE"));
  const ObjectGraph graph =
      parse_object_graph(reader.read_strings(std::string(kObjectGraphKey))[0]);
  EXPECT_EQ(graph.nodes[0].children,
            (std::vector<ObjectGraph::Child>{{1, "model"}, {5, "save_counter"}}));
  EXPECT_EQ(graph.nodes[1].children, (std::vector<ObjectGraph::Child>{{2, "deep"}, {4, "s"}}));
  const ShardedVariable other = zeros({2});
  restore_tensor_bundle(prefix, VariablesOfObjects{{{"model", "s"}, other}});
  EXPECT_EQ(values(other), (Floats{1, 2}));
  EXPECT_EQ(refusal<ValueError>([&] {
              save_tensor_bundle(prefix, VariablesOfObjects{{{}, other}});
            }),
            "a variable must be an attribute of an object, got the path of the root");
  EXPECT_EQ(
      refusal<ValueError>([&] {
        restore_tensor_bundle(prefix, VariablesOfObjects{{{}, other}, {{"model", "s"}, other}});
      }),
      "a variable must be an attribute of an object, got the path of the root");
}

TEST(ShardedBundle, AnEmptyNameLeadsToAVariableOfItsOwn) {
  const TemporaryDirectory directory;
  const auto prefix = directory.path() / "ckpt-1";
  const auto tree = [](const ShardedVariable& plain, const ShardedVariable& below,
                       const ShardedVariable& unnamed) {
    return VariablesOfObjects{{{"a"}, plain}, {{"", "a"}, below}, {{"b", ""}, unnamed}};
  };
  save_tensor_bundle(prefix, tree(sharded({{1}}), sharded({{2}}), sharded({{3}})));
  const ShardedVariable plain = zeros({1}), below = zeros({1}), unnamed = zeros({1});
  restore_tensor_bundle(prefix, tree(plain, below, unnamed));
  EXPECT_EQ(values(plain), Floats{1});
  EXPECT_EQ(values(below), Floats{2});
  EXPECT_EQ(values(unnamed), Floats{3});
}

TEST(ShardedBundle, VariablesInOnePieceAndScalarsToo) {
  MemoryFiles files;
  const float rows[] = {1, 2, 3, 4, 5, 6};
  const Variable table(Tensor::of<float>(rows, {3, 2})), scalar(Tensor::scalar(std::int64_t{7}));
  TensorBundleWriter writer(files, "/b");
  add(writer, "table", table);
  add(writer, "scalar", scalar);
  writer.finish();
  const TensorBundleReader reader(files, "/b");
  EXPECT_TRUE(reader.describe("table").slices.empty());
  const ShardedVariable split = zeros({1, 0, 2}, DType::kFloat32, {2});
  const Variable counter(Tensor::scalar(std::int64_t{0}));
  restore(reader, {{"table", split}, {"scalar", counter}});
  EXPECT_EQ(values(split), Floats(rows, rows + 6));
  EXPECT_EQ(counter.value().values<std::int64_t>()[0], 7);
  EXPECT_THROW(restore(reader, {{"scalar", Variable(Tensor::scalar(1.0f))}}), ValueError);
}

}  // namespace
}  // namespace embertable
