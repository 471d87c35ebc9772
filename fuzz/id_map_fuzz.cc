// Id maps as bytes. The checksum at the end is made to fit.

#include <cstdlib>
#include <string>

#include "base/bytes.h"
#include "embertable/errors.h"
#include "embertable/id_map.h"
#include "fuzz/target.h"
#include "input/key_index.h"

namespace {

using namespace embertable;  // NOLINT: a program

constexpr std::size_t kSumBytes = 8;

void read(const std::string& bytes) {
  try {
    const IdMap map = IdMap::from_bytes(bytes);
    if (map.to_bytes() != bytes) std::abort();
    if (map.num_keys() > 0) {
      const std::int64_t last = map.num_keys() - 1;
      const auto row = map.kind() == KeyKind::kString ? map.find(map.string_key(last))
                                                      : map.find(map.integer_key(last));
      if (row != last) std::abort();
    }
  } catch (const DataLoss&) {
  }
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string bytes(reinterpret_cast<const char*>(data), size);
  read(bytes);
  if (size < kSumBytes) return 0;
  const std::size_t end = size - kSumBytes;
  store_little_endian(input::hash_of(std::string_view(bytes).substr(0, end)), bytes.data() + end);
  read(bytes);
  return 0;
}

std::vector<std::string> fuzz::seeds() {
  IdMapBuilder strings(KeyKind::kString), integers(KeyKind::kInteger);
  for (const char* key : {"", "the hobbit", "caf\xc3\xa9"}) strings.add(key);
  for (const std::int64_t key : {0, -1, 1 << 30}) integers.add(key);
  return {strings.build().to_bytes(), integers.build({.out_of_vocabulary_rows = 3}).to_bytes(),
          IdMap::hashed(KeyKind::kString, 10).to_bytes()};
}
