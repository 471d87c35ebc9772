#include "apps/jobs/spec/file_spec.h"

#include <filesystem>

namespace embertable::jobs {

CsvFormat read_csv_format(TomlSection& section) {
  CsvFormat format;
  const std::string separator = section.text("field_separator", ",");
  if (separator.size() != 1 || separator == "\"" || separator == "\n")
    section.refuse_value("field_separator", "one character, no quote or line break");
  format.separator = separator[0];
  format.header = section.flag("header", true);
  format.trim = section.flag("trim", false);
  format.comment = section.text("comment", "");
  return format;
}

FileSpec read_file_spec(TomlSection& section) {
  FileSpec file;
  file.paths = section.one_or_more("file");
  file.format = read_csv_format(section);
  return file;
}

std::vector<std::string> paths_in(const std::string& root, const std::vector<std::string>& paths) {
  std::vector<std::string> found;
  for (const std::string& path : paths)
    found.push_back((std::filesystem::path(root) / path).string());
  return found;
}

}  // namespace embertable::jobs
