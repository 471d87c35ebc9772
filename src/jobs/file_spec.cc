#include "jobs/file_spec.h"

#include <filesystem>

namespace embertable::jobs {

FileSpec read_file_spec(TomlSection& section) {
  FileSpec file;
  file.paths = section.one_or_more("file");
  const std::string separator = section.text("field_separator", ",");
  if (separator.size() != 1 || separator == "\"" || separator == "\n") {
    section.refuse_value("field_separator", "one character, no quote or line break");
  }
  file.format.separator = separator[0];
  file.format.header = section.flag("header", true);
  file.format.trim = section.flag("trim", false);
  file.format.comment = section.text("comment", "");
  return file;
}

std::vector<std::string> paths_in(const std::string& root, const std::vector<std::string>& paths) {
  std::vector<std::string> found;
  for (const std::string& path : paths)
    found.push_back((std::filesystem::path(root) / path).string());
  return found;
}

}  // namespace embertable::jobs
