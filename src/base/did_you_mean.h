// Endings of errors about unknown names.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace embertable {

/// Counts the letters to insert, drop or replace to turn one name into the other.
std::size_t edit_distance(std::string_view a, std::string_view b);

/// Returns the end of a message which says that `name` is unknown: "; the nearest is 'adagrad'".
/// The nearest name is the first of those at the least edit distance. Returns "" if none are known.
std::string did_you_mean(std::string_view name, std::span<const std::string_view> known);
std::string did_you_mean(std::string_view name, std::span<const std::string> known);

/// Says what is wrong with a name that is none of `known`: "must be one of a, b, got "x"; the
/// nearest is 'a'".
std::string must_be_one_of(std::span<const std::string> known, std::string_view name);

}  // namespace embertable
