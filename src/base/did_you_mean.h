// How the refusal of a name that is not known goes on.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace embertable {

/// Letters to insert, drop or replace to turn one name into the other.
std::size_t edit_distance(std::string_view a, std::string_view b);

/// "; the nearest is 'adagrad'": the end of a message which says that `name` is not known. The
/// nearest name is the one at the least edit distance, the first of several. "" if none are known.
std::string did_you_mean(std::string_view name, std::span<const std::string_view> known);
std::string did_you_mean(std::string_view name, std::span<const std::string> known);

/// "must be one of a, b, got "x"; the nearest is 'a'": what is wrong with a name that is none of
/// `known`.
std::string must_be_one_of(std::span<const std::string> known, std::string_view name);

}  // namespace embertable
