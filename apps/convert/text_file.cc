#include "apps/convert/text_file.h"

#include "checkpoint/new_file.h"

namespace embertable::jobs {

void write_text_file(const std::filesystem::path& path, const std::string& text) {
  checkpoint::NewFile file(checkpoint::local_files(), path);
  file.write(checkpoint::bytes_of(text));
  file.commit();
}

}  // namespace embertable::jobs
