#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>

namespace embertable::tools {

// Checks of arguments, which say what must hold and what was given.

/// Refuses an empty text, as "$OUT" gives where the shell has no such variable.
CLI::Validator not_empty();

/// Refuses whatever is no whole number of at least `least`.
CLI::Validator at_least(std::int64_t least);

/// Refuses whatever is no number above 0.
CLI::Validator above_zero();

}  // namespace embertable::tools
