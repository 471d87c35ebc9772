#include "apps/convert/text_file.h"

#include <fmt/format.h>

#include <fstream>

#include "checkpoint/new_file.h"
#include "embertable/errors.h"

namespace embertable::jobs {

void write_text_file(const std::filesystem::path& path, const std::string& text) {
  // A new file would take the place of a device.
  if (checkpoint::descriptor_named(path) ||
      (std::filesystem::exists(path) && !std::filesystem::is_regular_file(path))) {
    std::ofstream file(path, std::ios::binary);
    file << text << std::flush;
    if (!file) throw IoError(fmt::format("'{}': cannot write", path.string()));
    return;
  }
  checkpoint::NewFile file(checkpoint::local_files(), path);
  file.write(checkpoint::bytes_of(text));
  file.commit();
}

}  // namespace embertable::jobs
