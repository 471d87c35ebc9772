// What readers of checkpoints, bundles and messages take for the worst megabytes that we know:
// basic blocks that run, which their sources count since they are compiled here once more, and
// bytes of memory that are taken. Time is not measured, since machines differ.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "checkpoint/manifest.h"
#include "checkpoint/matching.h"
#include "checkpoint/safetensors.h"
#include "embertable/errors.h"
#include "embertable/tensorflow/tensor_bundle.h"
#include "embertable/tensorflow/tpu_embedding_configuration.h"
#include "serving/served.h"
#include "tensorflow/bundle/bundle_messages.h"
#include "tensorflow/bundle/string_table.h"
#include "testing/memory_files.h"
#include "testing/saved_tables.h"

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"  // inlined, the pair below is taken apart
#endif

namespace {
std::uint64_t blocks = 0;
std::atomic<std::int64_t> allocated{0};
}  // namespace

extern "C" void __sanitizer_cov_trace_pc();  // NOLINT: the compiler's name
extern "C" void __sanitizer_cov_trace_pc() { ++blocks; }

void* operator new(std::size_t bytes) {
  allocated += static_cast<std::int64_t>(bytes);
  if (void* const memory = std::malloc(bytes == 0 ? 1 : bytes)) return memory;
  throw std::bad_alloc();
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  allocated += static_cast<std::int64_t>(bytes);
  return std::malloc(bytes);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace embertable {
namespace {

constexpr std::int64_t kMega = 1 << 20;

/// Reads an input of about a megabyte, which may be refused, and checks what that takes: per byte
/// at most so many blocks, and so many bytes of memory in all calls together.
void expect_linear(const char* what, std::int64_t bytes, const std::function<void()>& read,
                   std::int64_t most_blocks = 400, std::int64_t most_bytes = 400) {
  SCOPED_TRACE(what);
  EXPECT_GT(bytes, kMega / 2);
  EXPECT_LT(bytes, 3 * kMega);
  const std::uint64_t blocks_before = blocks;
  const std::int64_t allocated_before = allocated;
  std::string error;
  try {
    read();
  } catch (const std::exception& thrown) {
    error = std::string(thrown.what()).substr(0, 200);
  }
  const auto ran = static_cast<std::int64_t>(blocks - blocks_before);
  const std::int64_t taken = allocated - allocated_before;
  EXPECT_LT(ran / bytes, most_blocks) << error;
  EXPECT_LT(taken / bytes, most_bytes) << error;
}

using checkpoint::Manifest;

Manifest small_manifest() {
  Manifest manifest = checkpoint::test_manifest();
  manifest.features.clear();
  manifest.tables.pop_back();
  return manifest;
}

void expect_linear(const char* what, const Manifest& manifest) {
  const std::string text = to_text(manifest);
  expect_linear(what, std::ssize(text), [&] { checkpoint::parse_manifest(text, "manifest"); });
}

TEST(ReaderCosts, OfManifestsAreLinear) {
  Manifest parameters = small_manifest();
  for (int i = 0; i < 30'000; ++i)
    parameters.tables[0].optimizer->parameters.emplace_back(fmt::format("p{}", i), i);
  expect_linear("parameters", parameters);

  Manifest slots = small_manifest();
  slots.tables[0].name = std::string(400'000, 'n');
  for (int i = 0; i < 8'000; ++i) slots.tables[0].slots.push_back({fmt::format("s{}", i), true});
  expect_linear("slots of a table with a long name", slots);

  Manifest files = small_manifest();
  files.tables[0].name = std::string(300'000, 'n');
  files.tables[0].slots.clear();
  for (int i = 0; i < 2'000; ++i) {
    checkpoint::FileRecord file{.name = fmt::format("f{}", i), .table = 0, .rows = {0, 1, 1}};
    file.tensors = {{"t", "F32", {1, 3}, checkpoint::kDataAlignment, 12}};
    file.bytes = checkpoint::kDataAlignment + 12;
    file.xxh128 = std::string(32, '0');
    file.blocks_xxh128 = file.xxh128;
    files.files.push_back(file);
  }
  expect_linear("files of a table with a long name", files);
  for (checkpoint::FileRecord& file : files.files) file.tensors[0].name = "u";
  expect_linear("files of no table", files);

  Manifest tables = small_manifest();
  for (int i = 0; i < 5'000; ++i) {
    tables.tables.push_back(tables.tables[0]);
    tables.tables.back().name = fmt::format("t{}", i);
    tables.tables.back().slots.clear();
  }
  expect_linear("tables", tables);

  Manifest text = small_manifest();
  text.user_json = "\"" + std::string(kMega, 'a') + "\"";
  expect_linear("text of the caller", text);
}

TEST(ReaderCosts, OfServingAllFeaturesOfAManifestAreLinear) {
  Manifest manifest = small_manifest();
  for (int i = 0; i < 10'000; ++i)
    manifest.features.push_back({.path = fmt::format("f{:05}", 99'999 - i), .table = 0});
  checkpoint::MemoryFiles files;
  save(files, "/run", manifest, checkpoint::test_shards(manifest));
  const std::int64_t bytes = std::ssize(to_text(manifest));
  expect_linear(
      "features", bytes,
      [&] { serving::Served::open_all(files, checkpoint::Reader(files, "/run"), {}); }, 100);
}

TEST(ReaderCosts, OfTablesThatAreMatchedByNameAreLinear) {
  std::vector<checkpoint::SavedTable> ours, saved;
  for (int i = 0; i < 10'000; ++i) {
    ours.push_back({.name = std::string(100, 'n') + fmt::format("{}", i), .dim = 1});
    saved.insert(saved.begin(), ours.back());
  }
  RestoreOptions options;
  for (const checkpoint::SavedTable& table : ours) options.tables.push_back(table.name);
  expect_linear(
      "tables", std::ssize(ours) * 100,
      [&] {
        EXPECT_EQ(checkpoint::match({.name = "the test"}, ours, saved, options, "/run").read.size(),
                  ours.size());
      },
      100);
}

void expect_linear_header(const char* what, const std::string& json) {
  std::string file;
  for (int i = 0; i < 8; ++i) file += static_cast<char>(json.size() >> (8 * i));
  file += json;
  expect_linear(what, std::ssize(file),
                [&] { checkpoint::parse_safetensors(file, std::ssize(file), "file"); });
}

TEST(ReaderCosts, OfSafetensorsAreLinear) {
  std::string tensors = "{", metadata = "{\"__metadata__\":{", dims = "0";
  for (int i = 0; i < 20'000; ++i)
    tensors += fmt::format(R"("t{}":{{"dtype":"U8","shape":[0],"data_offsets":[0,0]}},)", i);
  expect_linear_header("tensors",
                       tensors + R"("t":{"dtype":"U8","shape":[],"data_offsets":[0,1]}})");
  for (int i = 0; i < 70'000; ++i) metadata += fmt::format(R"("k{}":"v",)", i);
  expect_linear_header("metadata", metadata + R"("k":"v"}})");
  for (int i = 0; i < 500'000; ++i) dims += ",1";
  expect_linear_header("dims",
                       R"({"t":{"dtype":"U8","shape":[)" + dims + R"(],"data_offsets":[0,0]}})");
}

using namespace formats;  // NOLINT: what bundles are made of
using checkpoint::MemoryFiles;

/// Reads all that a bundle of these entries has.
void expect_linear_bundle(const char* what, const std::map<std::string, std::string>& entries,
                          TableLayout layout = {}, std::int64_t most_blocks = 400) {
  MemoryFiles files;
  StringTableWriter writer(layout);
  writer.add("", serialize(BundleHeader{1, 0, 1, 0, {}}));
  for (const auto& [key, value] : entries) writer.add(key, value);
  const std::string index = writer.finish();
  files.create("/b.index")->write(checkpoint::bytes_of(index));
  const std::string data(1000, 'd');
  files.create("/b.data-00000-of-00001")->write(checkpoint::bytes_of(data));
  expect_linear(
      what, std::ssize(index),
      [&] {
        const TensorBundleReader reader(files, "/b");
        for (const std::string& key : reader.keys()) reader.describe(key);
        reader.read(reader.keys().back());
      },
      most_blocks);
}

TEST(ReaderCosts, OfIndexesOfBundlesAreLinear) {
  const std::string scalar = serialize(BundleEntry{.dtype = 1, .size = 4});
  std::map<std::string, std::string> names, long_names, slices;
  for (int i = 0; i < 60'000; ++i) names[fmt::format("name{:05}", i)] = scalar;
  expect_linear_bundle("names", names);

  for (int i = 0; i < 600; ++i)
    long_names[std::string(20'000, 'n') + fmt::format("{:05}", i)] = scalar;
  expect_linear_bundle("names that share their bytes", long_names);

  BundleEntry rows{.dtype = 1, .shape = {1 << 20, 1}};
  for (int i = 0; i < 50'000; ++i) rows.slices.push_back({{i, 1}, {0, 1}});
  slices["t"] = serialize(rows);
  expect_linear_bundle("slices", slices, {}, 1500);

  BundleEntry claims{.dtype = 1, .shape = {1, 2147483647}};
  for (int i = 0; i < 80'000; ++i) claims.slices.push_back({{0, 1}, {i, 1}});
  slices["t"] = serialize(claims);
  expect_linear_bundle("slices of a long row", slices, {}, 1500);

  std::map<std::string, std::string> zeros = {{"t", std::string(20 * kMega, '\0')}};
  expect_linear_bundle("compressed", zeros, {.type = BlockType::kSnappy});
}

TEST(ReaderCosts, OfMessagesAreLinear) {
  const std::pair<const char*, std::string> parts[] = {
      {"empty tables", std::string("\x0a\x00", 2)},
      {"unknown fields", std::string("\xf8\x3f\x01", 3)},
      {"open groups", "\x7b"},
      {"a number that goes on", "\xff"},
      {"tables with the longest optimizer", std::string("\x0a\x04\x2a\x02\x52\x00", 6)}};
  for (const auto& [what, part] : parts) {
    std::string bytes;
    while (std::ssize(bytes) < kMega) bytes += part;
    expect_linear(what, std::ssize(bytes), [&] { wire::parse_configuration(bytes); });
  }
}

}  // namespace
}  // namespace embertable
