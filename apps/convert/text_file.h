#pragma once

#include <filesystem>
#include <string>

namespace embertable::jobs {

/// Writes a text to a file, whose contents it replaces as a whole. Throws IoError naming the path;
/// the file is as it was then.
void write_text_file(const std::filesystem::path& path, const std::string& text);

}  // namespace embertable::jobs
