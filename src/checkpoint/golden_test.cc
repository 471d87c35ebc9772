// The smallest checkpoint, byte for byte. Made by hand; the sums are those of Python's xxhash
// package over these bytes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "checkpoint/digest.h"
#include "checkpoint/writer.h"
#include "testing/memory_files.h"

namespace embertable::checkpoint {
namespace {

// One table "t" of two rows of one float, 1 and 2, with a row-wise slot "a", 0.5 and -0.
const std::string kTable = std::string("\xf8\x0f\0\0\0\0\0\0", 8) + []() {  // 4088 bytes of header
  std::string json = R"({"__metadata__":{"embertable.first_row":"0",)"
                     R"("embertable.format":"embertable-checkpoint 1","embertable.row_step":"1",)"
                     R"("embertable.shard":"0","embertable.shards":"1","embertable.step":"1",)"
                     R"("embertable.table":"t","embertable.vocabulary_size":"2"},)"
                     R"("t":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]},)"
                     R"("t/a":{"dtype":"F32","shape":[2],"data_offsets":[8,16]}})";
  return json + std::string(4088 - json.size(), ' ');
}() + std::string("\0\0\x80\x3f\0\0\0\x40\0\0\0\x3f\0\0\0\x80", 16);

const std::string kManifest = R"text({
 "format": "embertable-checkpoint",
 "version": 1,
 "library": "0.1.0",
 "numerics_version": 1,
 "step": 1,
 "topology": {
  "hosts": 1,
  "replicas_per_host": 1,
  "sharding": "div"
 },
 "engine": {
  "seed": 5,
  "pipeline_execution": false
 },
 "tables": [
  {
   "name": "t",
   "vocabulary_size": 2,
   "dim": 1,
   "combiner": "sum",
   "initializer": "zeros()",
   "optimizer": {
    "rule": "sgd",
    "text": "sgd(learning_rate=0.5)",
    "learning_rate": 0.5,
    "parameters": {}
   },
   "slots": [
    {
     "name": "a",
     "row_wise": true
    }
   ]
  }
 ],
 "features": [
  {
   "path": "f",
   "name": null,
   "table": 0,
   "max_sequence_length": 0,
   "validate_weights_and_indices": true,
   "output_shape": [
    4
   ],
   "id_map": null
  }
 ],
 "files": [
  {
   "name": "t00000-t-00000-of-00001.safetensors",
   "kind": "table",
   "table": 0,
   "shard": 0,
   "shards": 1,
   "rows": {
    "first": 0,
    "step": 1,
    "count": 2
   },
   "bytes": 4112,
   "tensors": [
    {
     "name": "t",
     "dtype": "F32",
     "shape": [
      2,
      1
     ],
     "offset": 4096,
     "bytes": 8
    },
    {
     "name": "t/a",
     "dtype": "F32",
     "shape": [
      2
     ],
     "offset": 4104,
     "bytes": 8
    }
   ],
   "xxh128": "3b17fdc2f1712e9bb3f8a06a22166517",
   "block_bytes": 1048576,
   "blocks_xxh128": "3b17fdc2f1712e9bb3f8a06a22166517"
  }
 ],
 "user_json": "[1, 2]",
 "checksum": "7e63c44527fe93b0de949c743a968bc2"
}
)text";

Manifest manifest() {
  return {
      .library = "0.1.0",
      .numerics_version = 1,
      .step = 1,
      .seed = 5,
      .tables = {{.name = "t",
                  .vocabulary_size = 2,
                  .dim = 1,
                  .combiner = "sum",
                  .initializer = "zeros()",
                  .optimizer = SavedOptimizer{"sgd", "sgd(learning_rate=0.5)", 0.5, {}},
                  .slots = {{"a", true}}}},
      .features = {{.path = "f", .table = 0, .output_shape = {{4}}}},
  };
}

RowSource rows() {
  const auto values = [](std::vector<float> all) -> FillRows {
    return [all](std::int64_t first, std::span<float> out) {
      std::copy_n(all.begin() + first, out.size(), out.begin());
    };
  };
  return {.rows = 2, .fill = {values({1, 2}), values({0.5f, -0.0f})}};
}

TEST(Golden, ACheckpointIsByteForByteThis) {
  MemoryFiles files;
  const auto step = save(OpenRun(files, "/run"), manifest(),
                         [](std::int64_t, std::int32_t) { return rows(); }, {.json = "[1, 2]"});
  const auto contents = files.contents();
  ASSERT_EQ(contents.size(), 3u);  // and the lock
  EXPECT_EQ(*contents.at(step / "t00000-t-00000-of-00001.safetensors"), kTable);
  EXPECT_EQ(*contents.at(step / "manifest.json"), kManifest);
}

// Version 1 as it was first written is read for ever.
TEST(Golden, TheseBytesAreRead) {
  MemoryFiles files;
  files.make_directory("/saved");
  files.create("/saved/manifest.json")->write(bytes_of(kManifest));
  files.create("/saved/t00000-t-00000-of-00001.safetensors")->write(bytes_of(kTable));
  const Reader reader(files, "/saved");
  reader.verify();
  EXPECT_EQ(reader.caller_state().json, "[1, 2]");
  std::vector<float> found(2);
  reader.variable("t").read(0, found);
  EXPECT_EQ(found, (std::vector<float>{1, 2}));
  reader.variable("t/a").read(0, found);
  EXPECT_EQ(found[0], 0.5f);
  EXPECT_TRUE(std::signbit(found[1]));
}

TEST(Golden, TheDigestIsThis) {
  // XXH3-128 of 8-byte integers, names and floats: 1, 1 "t" 2 1, 1.0 2.0, 1, 1 "a" 1, 0.5 -0.0.
  EXPECT_EQ(digest({{"t", 1, {{"a", true}}, rows()}}), "dbe81e8075117f07381f3881049fd992");
}

}  // namespace
}  // namespace embertable::checkpoint
