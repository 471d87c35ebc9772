#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

namespace embertable::tools {

// Checks of arguments, which say what must hold and what was given.

/// Refuses an empty text, as "$OUT" gives where the shell has no such variable.
CLI::Validator not_empty();

/// Refuses whatever is no whole number of at least `least`, or up to `most`. Without leading zeros,
/// which would be read as octal.
CLI::Validator at_least(std::int64_t least);
CLI::Validator between(std::int64_t least, std::int64_t most);

/// Refuses whatever is no number above 0.
CLI::Validator above_zero();

/// Refuses whatever is no KEY=VALUE.
CLI::Validator key_and_value();

/// Refuses what `parse` throws a ValueError for, with its message.
CLI::Validator accepted_by(std::function<void(const std::string&)> parse);

/// Throws IoError if something has the name of a file that is to be made.
void refuse_existing(const std::filesystem::path& path);

}  // namespace embertable::tools
