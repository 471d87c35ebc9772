// The bytes that TensorFlow wrote: testdata/README.md.

#include <gtest/gtest.h>

#include "embertable/tensorflow/tpu_embedding_configuration.h"
#include "testing/golden_messages.h"

namespace embertable::wire {
namespace {

TEST(Golden, EveryConfigurationComesBackByteByByte) {
  int compared = 0;
  for (const char* kind : {"configs", "v1_configs"}) {
    for (const auto& config : golden()[kind]) {
      if (!config.contains("hex")) continue;
      const std::string bytes = from_hex(config["hex"]);
      const TPUEmbeddingConfiguration read = parse_configuration(bytes);
      EXPECT_EQ(to_hex(serialize(read)), config["hex"]) << config["id"];
      EXPECT_EQ(read.unknown_fields, "") << config["id"];
      EXPECT_EQ(read.table_descriptor.size(), config["record"]["table_descriptor"].size());
      ++compared;
    }
  }
  EXPECT_EQ(compared, 66);
}

/// Release 2.8 leaves lengths of sequences out of shapes that come from inputs.
bool has_lengths_from_inputs(const nlohmann::json& config) {
  if (config["build"].is_null() || !config["build"].contains("shapes")) return false;
  for (const auto& feature : config["features"]) {
    if (feature["max_sequence_length"] > 0 && feature["output_shape"].is_null()) return true;
  }
  return false;
}

TEST(Golden, TheReleaseThatCountsFeaturesAgrees) {
  int compared = 0;
  for (const auto& config : golden()["configs"]) {
    if (!config.contains("rB") || has_lengths_from_inputs(config)) continue;
    const TPUEmbeddingConfiguration whole = complete(parse_configuration(from_hex(config["hex"])));
    EXPECT_EQ(whole.batch_size_per_tensor_core, config["rB"]["batch_size_per_tensor_core"]);
    for (std::size_t t = 0; t < whole.table_descriptor.size(); ++t)
      EXPECT_EQ(whole.table_descriptor[t].num_features, config["rB"]["num_features"][t]);
    ++compared;
  }
  EXPECT_EQ(compared, 39);
}

}  // namespace
}  // namespace embertable::wire
