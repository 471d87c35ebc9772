#include "checkpoint/manifest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/step_number.h"
#include "checkpoint/run_directory.h"
#include "embertable/errors.h"
#include "testing/refusal.h"
#include "testing/saved_tables.h"

namespace embertable::checkpoint {
namespace {

using testing::HasSubstr;

std::string manifest_refusal(const std::function<void(Manifest&)>& spoil) {
  Manifest manifest = test_manifest();
  spoil(manifest);
  return refusal<ValueError>([&] { check_savable(manifest); });
}

TEST(Manifest, SaysWhatCannotBeSaved) {
  EXPECT_EQ(manifest_refusal([](Manifest&) {}), "");
  EXPECT_EQ(manifest_refusal([](Manifest& m) { m.step = -1; }),
            "cannot save: step must be 0 to 2^62, got -1");
  EXPECT_EQ(manifest_refusal([](Manifest& m) { m.step = kMostStep + 1; }),
            "cannot save: step must be 0 to 2^62, got 4611686018427387905");
  EXPECT_EQ(manifest_refusal([](Manifest& m) { m.user_json = "{"; }),
            "cannot save: user_json is not one JSON value in UTF-8");
  EXPECT_EQ(manifest_refusal([](Manifest& m) { m.user_json = "\"\xff\""; }),
            "cannot save: user_json is not one JSON value in UTF-8");
  EXPECT_EQ(manifest_refusal([](Manifest& m) { m.tables[1].name = "video/counts"; }),
            "cannot save: table 'video/counts': the name is taken by another variable or reserved");
  EXPECT_EQ(manifest_refusal([](Manifest& m) { m.tables[1].name = "__metadata__"; }),
            "cannot save: table '__metadata__': the name is taken by another variable or reserved");
  EXPECT_EQ(manifest_refusal([](Manifest& m) { m.tables[0].slots[1].name = "momenta"; }),
            "cannot save: table 'video': slot 'momenta' gives a name that another variable has");
  EXPECT_EQ(manifest_refusal([](Manifest& m) { m.features[0].table = 2; }),
            "cannot save: feature 'watched': there is no table 2");
  EXPECT_NE(manifest_refusal([](Manifest& m) { m.tables[0].name = "\xff"; }).find("is not UTF-8"),
            std::string::npos);
}

TEST(Manifest, NamesAndNumbersComeBackToTheLastBit) {
  Manifest manifest = test_manifest();
  manifest.tables.resize(1);
  manifest.features.clear();
  manifest.step = kMostStep;
  manifest.seed = std::numeric_limits<std::uint64_t>::max();
  const double inf = std::numeric_limits<double>::infinity();
  manifest.tables[0].optimizer->parameters = {{"a", 0.1}, {"b", 5e-324}, {"c", -0.0},
                                              {"d", inf}, {"e", -inf},   {"f", 1e300}};
  for (const char last : {'g', 'h'})
    manifest.tables[0].optimizer->parameters.emplace_back(std::string("f\0", 2) + last, last);
  manifest.tables[0].optimizer->learning_rate.reset();
  FileRecord file{.name = "t", .table = 0, .rows = {0, 1, 13}, .xxh128 = std::string(32, '0')};
  file.tensors = table_tensors(manifest.tables[0], 13);
  std::int64_t offset = 4096;
  for (StoredTensor& tensor : file.tensors) {
    tensor.offset = offset;
    offset += tensor.bytes = tensor_bytes(tensor.dtype, tensor.shape);
  }
  file.bytes = offset;
  file.blocks_xxh128 = std::string(32, '0');
  manifest.files = {file};
  const Manifest read = parse_manifest(to_text(manifest), "m");
  EXPECT_EQ(read, manifest);
  EXPECT_TRUE(std::signbit(read.tables[0].optimizer->parameters[2].second));
}

TEST(Manifest, AStepFromWhichNothingCouldGoOnIsDataLoss) {
  Manifest manifest = test_manifest();
  manifest.step = kMostStep + 1;
  EXPECT_THAT(refusal<DataLoss>([&] { parse_manifest(to_text(manifest), "m"); }),
              HasSubstr("step must be an integer in 0..4611686018427387904"));
}

TEST(RunDirectory, NamesOfSteps) {
  EXPECT_EQ(step_name(1234), "step_000000001234");
  EXPECT_EQ(step_name(0), "step_000000000000");
  EXPECT_EQ(step_name(9223372036854775807), "step_9223372036854775807");
  for (const std::int64_t step : {std::int64_t{0}, std::int64_t{1}, std::int64_t{999999999999},
                                  std::int64_t{1000000000000}, std::int64_t{9223372036854775807}})
    EXPECT_EQ(parse_step_name(step_name(step)), step);
  for (const char* name :
       {"step_", "step_1", "step_00000000000x", "step_-00000000001", "step_0000000000001",
        "step_9223372036854775808", "step_000000000001 ", "Step_000000000001", ""})
    EXPECT_EQ(parse_step_name(name), std::nullopt) << name;
  EXPECT_TRUE(is_temporary_name(".step_000000001234_tmp-17"));
  EXPECT_FALSE(is_temporary_name("step_000000001234_tmp-17"));
  EXPECT_FALSE(is_temporary_name(".step_000000001234"));
}

}  // namespace
}  // namespace embertable::checkpoint
