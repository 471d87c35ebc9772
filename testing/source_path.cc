#include "testing/source_path.h"

namespace embertable {

std::string source_path(std::string_view relative) {
  std::string path = EMBERTABLE_SOURCE_DIR;
  if (!relative.empty()) path.append("/").append(relative);
  return path;
}

}  // namespace embertable
