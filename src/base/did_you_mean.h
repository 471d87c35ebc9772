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

/// Maximum edit distance at which a name counts as another one misspelt.
inline constexpr std::size_t kMisspelt = 2;

/// True if `name` may be `other` misspelt: whatever the case of letters, at most kMisspelt of them
/// differ, and at most half.
bool is_misspelt(std::string_view name, std::string_view other);

/// Returns the end of a message which says that `name` is unknown: "; the nearest is 'adagrad'".
/// The nearest is the first at the least edit distance, in any case, among the known names that may
/// be meant: `name` is misspelt, or all words of one name, perhaps misspelt or short for others,
/// are words of the other, as "separator" and "field_sep" of "field_separator". Returns "" if there
/// is none, or for a name of more than 256 bytes.
std::string did_you_mean(std::string_view name, std::span<const std::string_view> known);
std::string did_you_mean(std::string_view name, std::span<const std::string> known);

/// Returns the same, or where none may be meant and few are known, all of them: "; there are 'a',
/// 'b'".
std::string name_hint(std::string_view name, std::span<const std::string_view> known);

/// Says what is wrong with a name that is none of `known`: "must be one of a, b, got "x"; the
/// nearest is 'a'".
std::string must_be_one_of(std::span<const std::string> known, std::string_view name);

}  // namespace embertable
