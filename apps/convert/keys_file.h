#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "embertable/id_map.h"

namespace embertable::jobs {

/// Returns the path of the file with the keys of an array's rows: "user.keys.txt" beside
/// "user.npy".
std::filesystem::path keys_path(const std::filesystem::path& array);

/// Writes a line for each row: its key, in which a backslash and the bytes that end lines are
/// `\\`, `\n` and `\r`. The line of a row without a key is empty.
void write_keys(const std::filesystem::path& path, std::int64_t rows,
                const std::function<std::string(std::int64_t row)>& key);

/// Reads the keys of `rows` rows, as texts. Rows without a key are behind the others, which share
/// them where there are such. Throws ValueError naming file and line; IoError.
IdMap read_keys(const std::filesystem::path& path, std::int64_t rows);

}  // namespace embertable::jobs
