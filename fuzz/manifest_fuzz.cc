// Manifests. The input is the text before the checksum, which is made to fit: no fuzzer would find
// it.

#include <cstdlib>
#include <string>

#include "base/hash.h"
#include "checkpoint/manifest.h"
#include "embertable/errors.h"
#include "fuzz/saved_files.h"
#include "fuzz/target.h"

namespace {

using namespace embertable;              // NOLINT: a program
using namespace embertable::checkpoint;  // NOLINT

constexpr const char* kSum = "\"checksum\": \"";

std::string with_sum(std::string body) {
  const std::string sum = hash_hex(bytes_of(body));
  return body.append(kSum).append(sum).append("\"\n}\n");
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string body(reinterpret_cast<const char*>(data), size);
  try {
    parse_manifest(body, "manifest");  // with the checksum that it has
  } catch (const IoError&) {
  }
  try {
    const std::string text = to_text(parse_manifest(with_sum(body), "manifest"));
    if (to_text(parse_manifest(text, "again")) != text) std::abort();
  } catch (const IoError&) {
  }
  return 0;
}

std::vector<std::string> fuzz::seeds() {
  const std::string whole = saved_files().at(kManifestName);
  return {whole.substr(0, whole.rfind(kSum)), whole};
}
