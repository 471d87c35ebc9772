#pragma once

#include <string>

#include "jobs/csv_reader.h"
#include "jobs/toml_section.h"

namespace embertable::jobs {

/// A text file, its path relative to the data folder.
struct FileSpec {
  std::string path;
  CsvFormat format;
};

/// The keys `file`, `field_separator` and `header` of a section.
FileSpec read_file_spec(TomlSection& section);

}  // namespace embertable::jobs
