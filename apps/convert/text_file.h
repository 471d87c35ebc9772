#pragma once

#include <filesystem>
#include <string>

namespace embertable::jobs {

/// Writes a text to a file, which it replaces as a whole, or to what is no regular file, such as
/// /dev/stdout. Throws IoError naming the path; a regular file is as it was then.
void write_text_file(const std::filesystem::path& path, const std::string& text);

}  // namespace embertable::jobs
