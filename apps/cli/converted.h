#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "apps/convert/table_format.h"

namespace embertable::tools {

/// Adds the option --format, which is read into `word`. with_int8: it may be int8.
void add_format(CLI::App& command, std::string& word, bool with_int8 = false);

/// Returns the format that the word names.
jobs::TableFormat format_of(const std::string& word);

/// Prints "user  [300, 16]  out/user.npy", or a JSON object.
void print_converted(const jobs::ConvertedArray& array, bool json);

}  // namespace embertable::tools
