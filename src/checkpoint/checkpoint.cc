#include "embertable/checkpoint.h"

#include "checkpoint/digest.h"
#include "checkpoint/file.h"
#include "checkpoint/reader.h"

namespace embertable {

using checkpoint::local_files;
using checkpoint::Reader;

std::filesystem::path find_checkpoint(const std::filesystem::path& path) {
  return Reader(local_files(), path).directory();
}

SavedState read_saved_state(const std::filesystem::path& path) {
  const Reader reader(local_files(), path);
  return {.step = reader.manifest().step, .caller = reader.caller_state()};
}

std::string digest_checkpoint(const std::filesystem::path& path) {
  return checkpoint::digest(Reader(local_files(), path));
}

void verify_checkpoint(const std::filesystem::path& path) { Reader(local_files(), path).verify(); }

}  // namespace embertable
