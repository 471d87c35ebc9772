#include "checkpoint/safetensors.h"

#include <gtest/gtest.h>

#include "embertable/checkpoint.h"
#include "embertable/errors.h"
#include "testing/refusal.h"

namespace embertable::checkpoint {
namespace {

std::string file_of(const std::string& json, std::size_t data_bytes = 0) {
  return std::string(1, static_cast<char>(json.size())) + std::string(7, '\0') + json +
         std::string(data_bytes, 'x');
}

std::string safetensors_refusal(const std::string& file) {
  try {
    parse_safetensors(file, static_cast<std::int64_t>(file.size()), "f");
  } catch (const DataLoss& loss) {
    return loss.what();
  }
  return "";
}

TEST(Safetensors, HeaderIsByteForByteThis) {
  SafetensorsHeader header{
      .metadata = {{"k", "v"}},
      .tensors = {{.name = "a", .dtype = "F32", .shape = {2, 3}}, {.name = "b\n", .dtype = "U8"}}};
  const std::string json = R"({"__metadata__":{"k":"v"},)"
                           R"("a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},)"
                           R"("b\n":{"dtype":"U8","shape":[],"data_offsets":[24,25]}})";
  // 4096 - 8 = 4088 = 0x0ff8 bytes of JSON and spaces.
  EXPECT_EQ(format_safetensors(header),
            std::string("\xf8\x0f\0\0\0\0\0\0", 8) + json + std::string(4088 - json.size(), ' '));
  EXPECT_EQ(header.data_offset, 4096);
  EXPECT_EQ(header.tensors[1].offset, 4096 + 24);
  EXPECT_EQ(header.tensors[1].bytes, 1);
}

TEST(Safetensors, DataStartsAtTheNextMultipleOf4096) {
  for (const auto& [name_bytes, data_offset] :
       {std::pair{4037, 4096}, {4038, 8192}, {8133, 8192}, {8134, 12288}}) {
    // {"NAME":{"dtype":"U8","shape":[],"data_offsets":[0,1]}} is 51 bytes beside the name, and 8
    // for the length.
    SafetensorsHeader header{.tensors = {{.name = std::string(name_bytes, 'n'), .dtype = "U8"}}};
    EXPECT_EQ(format_safetensors(header).size(), data_offset);
    EXPECT_EQ(header.data_offset, data_offset);
  }
}

TEST(Safetensors, ReadsWhatOthersWrite) {
  const std::string json = R"({"b":{"data_offsets":[4,4],"shape":[0,9],"dtype":"I64"},)"
                           R"("a":{"dtype":"BF16","shape":[2],"data_offsets":[0,4]}} )";
  const std::string file = file_of(json, 4);
  const auto header = parse_safetensors(file, static_cast<std::int64_t>(file.size()), "f");
  const auto start = static_cast<std::int64_t>(8 + json.size());
  EXPECT_EQ(header.data_offset, start);
  EXPECT_EQ(header.tensors, (std::vector<StoredTensor>{{"a", "BF16", {2}, start, 4},
                                                       {"b", "I64", {0, 9}, start + 4, 0}}));
}

TEST(Safetensors, RefusesContradictionsByName) {
  const auto tensors = [](const std::string& a, const std::string& b) {
    return R"({"a":{"dtype":"U8","shape":[4],"data_offsets":)" + a +
           R"(},"b":{"dtype":"U8","shape":[4],"data_offsets":)" + b + "}}";
  };
  EXPECT_EQ(safetensors_refusal(file_of(tensors("[0,4]", "[4,8]"), 8)), "");
  EXPECT_EQ(safetensors_refusal(file_of(tensors("[0,4]", "[2,6]"), 6)),
            "f: tensor 'b' starts at byte 115, the one before ends at 117");
  EXPECT_EQ(safetensors_refusal(file_of(tensors("[0,4]", "[5,9]"), 9)),
            "f: tensor 'b' starts at byte 118, the one before ends at 117");
  EXPECT_EQ(safetensors_refusal(file_of(tensors("[0,4]", "[4,8]"), 7)),
            "f: tensors end at byte 121, the file at 120");
  EXPECT_EQ(safetensors_refusal(file_of(tensors("[0,4]", "[4,7]"), 7)),
            "f: tensor 'b' has 3 bytes, which its shape contradicts");
  EXPECT_EQ(safetensors_refusal(file_of(tensors("[0,4]", "[4]"), 8)),
            "f: tensor 'b'.data_offsets must be two numbers");
  EXPECT_EQ(
      safetensors_refusal(file_of(R"({"a":{"dtype":"U9","shape":[],"data_offsets":[0,1]}})", 1)),
      "f: tensor 'a'.dtype is unknown: 'U9'");
  EXPECT_EQ(safetensors_refusal(file_of(R"({"a":{},"a":{}})")),
            "f: cannot parse: key 'a' stands twice in one object");
  EXPECT_EQ(safetensors_refusal(file_of(R"({"__metadata__":{"k":1}})")),
            "f: metadata 'k' must be a text");
  EXPECT_EQ(safetensors_refusal(file_of("[]")), "f: the top level must be an object");
}

TEST(Safetensors, RefusesSizesThatOverflow) {
  const std::string json =
      R"({"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}})";
  EXPECT_EQ(safetensors_refusal(file_of(json)),
            "f: tensor 'a' has 0 bytes, which its shape contradicts");
}

TEST(Safetensors, RefusesHeadersThatAreTooLongBeforeReadingThem) {
  EXPECT_EQ(safetensors_refusal("1234567"), "f: cannot parse: too short for a header");
  EXPECT_EQ(safetensors_refusal(std::string(7, '\0') + "\x80" + "{}"),
            "f: cannot parse: a header of 9223372036854775808 bytes, at most 2 fit");
  EXPECT_THROW(safetensors_header_bytes(std::string("\x01\xe1\xf5\x05\0\0\0\0", 8), 1LL << 40, "f"),
               DataLoss);  // 100,000,001
}

TEST(Safetensors, RefusesDeepNesting) {
  EXPECT_EQ(safetensors_refusal(file_of(std::string(33, '['))),
            "f: cannot parse: nested deeper than 32 levels");
}

TEST(Safetensors, RefusesNamesThatTheFormatCannotHold) {
  const auto format = [](std::vector<StoredTensor> tensors) {
    SafetensorsHeader header{.tensors = std::move(tensors)};
    format_safetensors(header);
  };
  EXPECT_THROW(format({{.name = "__metadata__", .dtype = "U8"}}), ValueError);
  EXPECT_THROW(format({{.name = "\xff", .dtype = "U8"}}), ValueError);
  EXPECT_THROW(format({{.name = "a", .dtype = "U8"}, {.name = "a", .dtype = "U8"}}), ValueError);
}

TEST(DenseTensor, IsMadeOfNumbersAndGivesThemBack) {
  const std::vector<float> weights = {1.5f, -2, 0, 4, 5, 6};
  const DenseTensor matrix = DenseTensor::from(std::span(weights), {2, 3});
  EXPECT_EQ(matrix.dtype, "F32");
  EXPECT_EQ(matrix.bytes.size(), 24u);
  EXPECT_EQ(matrix.as<float>(), weights);
  const std::vector<std::int64_t> counts = {7, std::int64_t{1} << 40};
  EXPECT_EQ(DenseTensor::from(counts).shape, std::vector<std::int64_t>{2});
  EXPECT_EQ(DenseTensor::from(counts).as<std::int64_t>(), counts);
  EXPECT_EQ(DenseTensor::from(std::vector<std::uint8_t>()).as<std::uint8_t>().size(), 0u);
  EXPECT_EQ(DenseTensor::from(std::vector<double>{1}).dtype, "F64");
  EXPECT_EQ(DenseTensor::from(std::vector<std::uint16_t>{1}).dtype, "U16");
}

TEST(DenseTensor, RefusesOtherTypesAndNumbersOfElements) {
  const std::vector<float> weights = {1, 2, 3};
  EXPECT_EQ(refusal<TypeError>([&] { DenseTensor::from(weights).as<double>(); }),
            "dense tensor: elements must be F64, got F32");
  EXPECT_EQ(refusal<ValueError>([&] {
              DenseTensor::from(std::span(weights), {2, 2});
            }),
            "dense tensor: F32 (2, 2) must have 16 bytes, got 12");
  DenseTensor cut = DenseTensor::from(weights);
  cut.bytes.pop_back();
  EXPECT_EQ(refusal<ValueError>([&] { cut.as<float>(); }),
            "dense tensor: F32 (3) must have 12 bytes, got 11");
  cut.shape = {std::int64_t{1} << 62, 4};
  EXPECT_EQ(refusal<ValueError>([&] { cut.as<float>(); }),
            "dense tensor: F32 (4611686018427387904, 4) must be a shape of less than 2^63 bytes");
}

}  // namespace
}  // namespace embertable::checkpoint
