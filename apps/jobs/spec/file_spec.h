#pragma once

#include <string>
#include <vector>

#include "apps/jobs/spec/toml_section.h"
#include "apps/jobs/text/csv_reader.h"

namespace embertable::jobs {

/// Separated text in one file, or in several that follow each other; paths are relative to the data
/// folder.
struct FileSpec {
  std::vector<std::string> paths;
  CsvFormat format;
};

/// Reads the keys `field_separator`, `header`, `trim` and `comment` of a section.
CsvFormat read_csv_format(TomlSection& section);

/// Reads the format and `file`, one path or a list.
FileSpec read_file_spec(TomlSection& section);

/// Returns the paths of files in a data folder.
std::vector<std::string> paths_in(const std::string& root, const std::vector<std::string>& paths);

}  // namespace embertable::jobs
