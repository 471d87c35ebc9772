#pragma once

#include <string>
#include <string_view>

#include "apps/jobs/spec/toml_section.h"

// TOML that says the same when it is read again, whatever its keys and texts hold. The formatter of
// toml++ 3.3 writes some keys without the quotes that they need, and numbers with more digits than
// give them back.

namespace embertable::jobs {

/// Returns a key as it stands in a job: within quotes where it needs them.
std::string toml_key(std::string_view key);

/// Returns a value as it stands behind a key, on one line.
std::string toml_value(const toml::node& value);

/// Returns the lines of a table, which stands at the dotted key `path`, or is the document if that
/// is empty: its values, then each table that is not inline below a header of its own.
std::string toml_lines(const toml::table& table, const std::string& path = "");

}  // namespace embertable::jobs
