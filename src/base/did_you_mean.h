// Endings of errors about unknown names.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace embertable {

/// True if the names differ at most in whether ASCII letters are capital ones.
bool equal_in_any_case(std::string_view a, std::string_view b);

/// Counts the letters to insert, drop or replace to turn one name into the other.
std::size_t edit_distance(std::string_view a, std::string_view b);

/// Returns the end of a message which says that `name` is unknown: "; the nearest is 'adagrad'".
/// The nearest name is the first of those at the least edit distance. Returns "" if none are known,
/// or for a name of more than 256 bytes, which is not misspelt.
std::string did_you_mean(std::string_view name, std::span<const std::string_view> known);
std::string did_you_mean(std::string_view name, std::span<const std::string> known);

/// Says what is wrong with a name that is none of `known`: "must be one of a, b, got "x"; the
/// nearest is 'a'".
std::string must_be_one_of(std::span<const std::string> known, std::string_view name);

}  // namespace embertable
