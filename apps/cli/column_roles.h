#pragma once

#include <optional>
#include <string>

#include "apps/jobs/data/seen_file.h"

namespace embertable::tools {

// What a column of a file may be to a model, by its name and its values.

bool is_called_a_user(const jobs::SeenColumn& column);
bool is_called_an_item(const jobs::SeenColumn& column);
bool is_called_a_label(const jobs::SeenColumn& column);
bool is_called_a_time(const jobs::SeenColumn& column);

/// True if the numbers of a column are names of something, by the column's own name.
bool is_called_a_key(const jobs::SeenColumn& column);

/// True if most fields are numbers; others may be "N/A".
bool are_mostly_numbers(const jobs::SeenColumn& column);

/// Lists of keys in the fields of a column.
struct ListForm {
  std::string separator;  ///< between keys
  bool integers = false;  ///< all keys are
};

/// Returns how the texts of a column are lists, if they are: "|", ";" or a comma without a blank
/// behind it stands in half of the different texts or more, which have fewer different keys.
std::optional<ListForm> lists_in(const jobs::SeenColumn& column);

/// True for a column that says nothing of a label: of times, of keys that are all different, or
/// always the same.
bool says_nothing(const jobs::SeenColumn& column);

/// Returns a number as TOML has it: whole ones without a point.
std::string number_text(double value);

/// Returns "integers, 5 different, 1 to 5", for people.
std::string described(const jobs::SeenColumn& column);

}  // namespace embertable::tools
