#include "jobs/file_spec.h"

namespace embertable::jobs {

FileSpec read_file_spec(TomlSection& section) {
  FileSpec file;
  file.path = section.text("file");
  const std::string separator = section.text("field_separator", ",");
  if (separator.size() != 1 || separator == "\"" || separator == "\n") {
    section.refuse_value("field_separator", "one character, no quote or line break");
  }
  file.format.separator = separator[0];
  file.format.header = section.flag("header", true);
  return file;
}

}  // namespace embertable::jobs
