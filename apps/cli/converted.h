#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "apps/convert/table_format.h"

namespace embertable::tools {

/// Adds the option that says what tables are exported to or imported from, as a word.
void add_format(CLI::App& command, std::string& word);

/// What the word means.
jobs::TableFormat format_of(const std::string& word);

/// "user  [300, 16]  out/user.npy", or a JSON object.
void print_converted(const jobs::ConvertedArray& array, bool json);

}  // namespace embertable::tools
