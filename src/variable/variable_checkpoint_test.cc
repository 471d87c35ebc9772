#include "embertable/variables/variable_checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "checkpoint/writer.h"
#include "embertable/embedding.h"
#include "embertable/errors.h"
#include "testing/executor.h"
#include "testing/refusal.h"
#include "testing/temporary_directory.h"
#include "testing/tensors.h"

namespace embertable {
namespace {

using testing::HasSubstr;

ShardedVariable zeros_like(const Tensor& value, const std::vector<std::int64_t>& sizes) {
  return sharded(Tensor(value.dtype(), value.shape()), sizes);
}

/// Saves `value` in components of `saved` rows, restores it in components of `wanted` rows.
Tensor through_a_checkpoint(const Tensor& value, const std::vector<std::int64_t>& saved,
                            const std::vector<std::int64_t>& wanted) {
  const TemporaryDirectory directory;
  save_variables(CheckpointRun(directory.path()), 1, {{"x", sharded(value, saved)}});
  const ShardedVariable restored = zeros_like(value, wanted);
  restore_variables(directory.path(), {{"x", restored}});
  return restored.value();
}

TEST(ShardedCases, Case73_WhatChangesAfterASaveComesBack) {
  const TemporaryDirectory directory;
  const ShardedVariable variable = sharded(floats({0, 1, 2, 3}, {4}), {1, 1, 1, 1});
  save_variables(CheckpointRun(directory.path()), 0, {{"x", variable}});
  Variable first = variable.variables()[0];
  first.assign(floats({4}, {1}));
  EXPECT_EQ(floats_of(variable.value()), (Floats{4, 1, 2, 3}));
  EXPECT_EQ(restore_variables(directory.path(), {{"x", variable}}).step, 0);
  EXPECT_EQ(floats_of(variable.value()), (Floats{0, 1, 2, 3}));
}

TEST(ShardedCases, Case74_FourComponentsToOneVariableAndBack) {
  const TemporaryDirectory directory;
  const CheckpointRun run(directory.path());
  save_variables(run, 1, {{"x", sharded(floats({0, 1, 2, 3}, {4}), {1, 1, 1, 1})}});
  Variable plain(Tensor(DType::kFloat32, {4}));
  restore_variables(directory.path(), {{"x", plain}});
  EXPECT_EQ(floats_of(plain.value()), (Floats{0, 1, 2, 3}));
  plain.assign(floats({5, 10, 15, 20}, {4}));
  save_variables(run, 2, {{"x", plain}});
  const ShardedVariable four = zeros_like(plain.value(), {1, 1, 1, 1});
  restore_variables(directory.path(), {{"x", four}});
  EXPECT_EQ(floats_of(four.variables()[3].value()), (Floats{20}));
  EXPECT_EQ(floats_of(four.value()), (Floats{5, 10, 15, 20}));
}

TEST(VariableCheckpoint, ASavedTensorOfNineAxesIsRefusedByDirectoryAndName) {
  const TemporaryDirectory directory;
  const checkpoint::OpenRun run(checkpoint::local_files(), directory.path());
  checkpoint::Writer writer(run, {.library = kVersion});
  writer.add_state({}, {}, {{"deep", {"U8", std::vector<std::int64_t>(9, 1), [](const auto& write) {
                                        write(checkpoint::bytes_of("x"));
                                      }}}});
  const std::string step = writer.commit().string();
  Variable plain(Tensor(DType::kBool, {1}));
  EXPECT_EQ(refusal<ValueError>([&] {
              restore_variables(directory.path(), {{"deep", plain}});
            }),
            step + ": variable 'deep' has 9 axes, at most 8 can be restored");
}

TEST(ShardedCases, Case75_FourComponentsToTwo) {
  const Tensor value = floats({0, 1, 2, 3}, {4});
  EXPECT_TRUE(identical(through_a_checkpoint(value, {1, 1, 1, 1}, {2, 2}), value));
}

TEST(ShardedCases, Case76_VariablesThatAreMadeAfterwardsStartWithWhatWasSaved) {
  const TemporaryDirectory directory;
  const Tensor value = floats({1, 2, 3, 4}, {4});
  const auto made = [&](std::int64_t parts) {
    VariableCreator creator({.variable_partitioner = FixedShardsPartitioner(parts)});
    return creator.create(saved_value(directory.path(), "x"), {.name = "y"});
  };
  save_variables(CheckpointRun(directory.path()), 1, {{"x", sharded(value, {1, 1, 1, 1})}});
  EXPECT_EQ(floats_of(made(4).sharded().variables()[2].value()), (Floats{3}));
  EXPECT_EQ(floats_of(made(2).sharded().variables()[1].value()), (Floats{3, 4}));
  EXPECT_EQ(floats_of(made(1).whole().value()), (Floats{1, 2, 3, 4}));
  save_variables(CheckpointRun(directory.path()), 2, {{"x", sharded(value, {2, 2})}});
  EXPECT_EQ(floats_of(made(4).sharded().value()), (Floats{1, 2, 3, 4}));
}

/// Row counts, zeros among them, that add up.
std::vector<std::int64_t> random_sizes(std::mt19937& dice, std::int64_t rows) {
  std::vector<std::int64_t> sizes;
  const auto at_most = [&](std::int64_t n) {
    return std::uniform_int_distribution<std::int64_t>(0, n)(dice);
  };
  for (auto more = at_most(8); more > 0; --more) {
    sizes.push_back(at_most(rows));
    rows -= sizes.back();
  }
  sizes.push_back(rows);
  return sizes;
}

/// Every bit pattern may be there.
Tensor random_tensor(std::mt19937& dice, DType dtype, const Shape& shape) {
  Tensor tensor(dtype, shape);
  for (std::byte& byte : tensor.mutable_bytes())
    byte = static_cast<std::byte>(dice() % (dtype == DType::kBool ? 2 : 256));
  return tensor;
}

TEST(ShardedCases, Case77_AnyComponentsOfAnyDtypeBecomeAnyOthers) {
  std::mt19937 dice(test_seed(77));
  const std::vector<Shape> tails = {Shape::scalar(), {3}, {2, 2}, {0}};
  for (int round = 0; round < 40; ++round) {
    const DType dtype = kDTypes[static_cast<std::size_t>(round) % kDTypes.size()];
    const auto rows = static_cast<std::int64_t>(dice() % 12);
    Shape shape({rows});
    for (const std::int64_t dim : tails[dice() % tails.size()].dims()) shape = shape.append(dim);
    const Tensor value = random_tensor(dice, dtype, shape);
    const Tensor slot = random_tensor(dice, DType::kFloat32, shape);
    const TemporaryDirectory directory;
    save_variables(CheckpointRun(directory.path()), round,
                   {{"x", sharded(value, random_sizes(dice, rows))},
                    {"x/slot", sharded(slot, random_sizes(dice, rows))}});
    verify_checkpoint(directory.path());
    const ShardedVariable restored = zeros_like(value, random_sizes(dice, rows));
    const ShardedVariable of_slot = zeros_like(slot, random_sizes(dice, rows));
    restore_variables(directory.path(), {{"x", restored}, {"x/slot", of_slot}});
    ASSERT_TRUE(identical(restored.value(), value)) << round;
    ASSERT_TRUE(identical(of_slot.value(), slot)) << round;
  }
}

TEST(VariableCheckpoint, RefusesWhatDoesNotFitBeforeAnythingChanges) {
  const TemporaryDirectory directory;
  save_variables(CheckpointRun(directory.path()), 1,
                 {{"a", sharded(counting({4}), {4})}, {"b", sharded(counting({4}), {4})}});
  const ShardedVariable a = sharded(floats({9, 9, 9, 9}, {4}), {2, 2});
  const auto restore = [&](const CheckpointVariable& b) {
    restore_variables(directory.path(), {{"a", a}, {"b", b}});
  };
  const std::string why = refusal<ValueError>([&] {
    restore_variables(directory.path(),
                      {{"a", sharded(counting({5}), {5})}, {"b", Variable(ints({0, 0, 0, 0}))}});
  });
  EXPECT_THAT(why, HasSubstr("variable 'a': its shape (5) does not match the shape stored in "
                             "checkpoint, (4)\nvariable 'b': expected dtype I64 does not equal "
                             "original dtype F32"));
  EXPECT_THROW(restore(Variable(counting({3}))), ValueError);
  EXPECT_THAT(refusal<KeyError>([&] {
                restore_variables(directory.path(), {{"a", a}, {"c", Variable(counting({4}))}});
              }),
              HasSubstr("Key 'c' not found in checkpoint"));
  Floats memory(4, 7);
  const Variable fixed = Variable::over({.data = memory.data(), .shape = {4}, .row_stride = 4});
  EXPECT_THAT(refusal<StateError>([&] { restore(fixed); }),
              HasSubstr("restore of 'b': variable 'Variable': is read-only"));
  EXPECT_EQ(floats_of(a.value()), (Floats{9, 9, 9, 9}));
}

TEST(VariableCheckpoint, IsOneCommitWithTheCallersState) {
  const TemporaryDirectory directory;
  const CheckpointRun run(directory.path());
  CallerState state{.json = R"({"at":3})"};
  state.tensors["w"] = {"F64", {1}, std::string(8, '\0')};
  state.blobs["b"] = "bytes";
  save_variables(run, 5, {{"x", Variable(counting({2}))}}, state);
  EXPECT_THAT(refusal<StateError>([&] { save_variables(run, 5, {}); }),
              HasSubstr("step 5 is already saved"));
  EXPECT_EQ(refusal<ValueError>([&] {
              save_variables(run, 6, {{"w", Variable(counting({2}))}}, state);
            }),
            "tensor 'w': a variable has this name too");
  EXPECT_EQ(run.steps(), (std::vector<std::int64_t>{5}));
  const SavedState saved = read_saved_state(directory.path());
  EXPECT_EQ(saved.caller.json, state.json);
  EXPECT_EQ(saved.caller.blobs, state.blobs);
  EXPECT_EQ(saved.caller.tensors.at("w"), state.tensors.at("w"));
  EXPECT_EQ(saved.caller.tensors.at("x"), dense_tensor_of(Variable(counting({2}))));
}

TEST(VariableCheckpoint, RefusesADamagedBlockAndKeepsTheValues) {
  const TemporaryDirectory directory;
  const auto step = save_variables(CheckpointRun(directory.path()), 1,
                                   {{"x", sharded(counting({1000}), {500, 500})}});
  {
    std::fstream file(step / "tensors.safetensors",
                      std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(-1, std::ios::end);
    file.put('\x7f');
  }
  const ShardedVariable variable = zeros_like(counting({1000}), {999, 1});
  EXPECT_THAT(refusal<DataLoss>([&] {
                restore_variables(step, {{"x", variable}});
              }),
              HasSubstr("block 0"));
  EXPECT_EQ(floats_of(variable.value()), Floats(1000, 0));
}

TEST(VariableCheckpoint, ReadsTablesAndSlotsOfAnEngine) {
  const TemporaryDirectory directory;
  const TablePtr table = make_table(
      {.vocabulary_size = 7, .dim = 2, .initializer = Initializer::row_id(), .name = "films"});
  Embedding engine(Nested<FeatureConfig>(FeatureConfig{.table = table}), Optimizer("adagrad", 0.1),
                   make_strategy({.hosts = 3}));
  engine.build(3);
  CallerState state;
  state.tensors["dense"] = dense_tensor_of(sharded(counting({3, 2}), {1, 2}));
  engine.save(directory.path(), state);
  const ShardedVariable rows = zeros_like(counting({7, 2}), {2, 5});
  const ShardedVariable slots = zeros_like(counting({7, 2}), {6, 0, 1});
  const ShardedVariable dense = zeros_like(counting({3, 2}), {3});
  restore_variables(directory.path(),
                    {{"films", rows}, {"films/accumulators", slots}, {"dense", dense}});
  EXPECT_EQ(floats_of(rows.value()), (Floats{0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6}));
  EXPECT_EQ(floats_of(slots.value()), Floats(14, 0.1f));
  EXPECT_TRUE(identical(dense.value(), counting({3, 2})));
}

TEST(VariableCheckpoint, SavesRowsThatStandApartInPieces) {
  // 40,000 records of 9 floats, 8 of which are the row: more than is made contiguous at once.
  Floats memory(40000 * 9);
  std::iota(memory.begin(), memory.end(), 0.0f);
  const Variable apart =
      Variable::over({.data = memory.data(), .shape = {40000, 8}, .row_stride = 36});
  const TemporaryDirectory directory;
  save_variables(CheckpointRun(directory.path()), 1, {{"x", apart}});
  const ShardedVariable restored = zeros_like(apart.value().copy(), {39999, 1});
  restore_variables(directory.path(), {{"x", restored}});
  EXPECT_TRUE(identical(restored.value(), apart.value().copy()));
}

TEST(VariableCheckpoint, SavesScalars) {
  const TemporaryDirectory directory;
  save_variables(CheckpointRun(directory.path()), 1, {{"x", Variable(Tensor::scalar(2.5))}});
  Variable restored(Tensor::scalar(0.0));
  restore_variables(directory.path(), {{"x", restored}});
  EXPECT_TRUE(identical(restored.value(), Tensor::scalar(2.5)));
  EXPECT_TRUE(
      identical(VariableCreator().create(saved_value(directory.path(), "x")).whole().value(),
                Tensor::scalar(2.5)));
}

}  // namespace
}  // namespace embertable
