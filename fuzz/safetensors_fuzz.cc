// Headers of data files, those of others' tools among them.

#include <cstdlib>
#include <string>
#include <string_view>

#include "checkpoint/safetensors.h"
#include "embertable/errors.h"
#include "fuzz/saved_files.h"
#include "fuzz/target.h"

namespace {

using namespace embertable;              // NOLINT: a program
using namespace embertable::checkpoint;  // NOLINT

void read(std::string_view text, std::int64_t file_bytes) {
  try {
    const SafetensorsHeader header = parse_safetensors(text, file_bytes, "file");
    SafetensorsHeader again = header;
    const std::string prefix = format_safetensors(again);
    const std::int64_t bytes =
        file_bytes - header.data_offset + static_cast<std::int64_t>(prefix.size());
    const SafetensorsHeader same = parse_safetensors(prefix, bytes, "again");
    if (same.tensors.size() != header.tensors.size() || same.metadata != header.metadata)
      std::abort();
  } catch (const IoError&) {
  }
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  read(text, static_cast<std::int64_t>(size));
  // A file of which no more was read than the header; its last byte says how many bytes follow.
  if (size > 0)
    read(text.substr(0, size - 1), static_cast<std::int64_t>(size - 1 + data[size - 1]));
  read(text, std::int64_t{1} << 62);
  return 0;
}

std::vector<std::string> fuzz::seeds() {
  std::vector<std::string> seeds;
  for (const auto& [name, bytes] : saved_files())
    if (name != kManifestName) seeds.push_back(bytes);
  std::string small = R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
  seeds.push_back(std::string{static_cast<char>(small.size()), 0, 0, 0, 0, 0, 0, 0} + small +
                  "12345678");
  return seeds;
}
