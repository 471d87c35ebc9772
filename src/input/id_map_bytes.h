#pragma once

#include <string>
#include <string_view>

#include "input/key_rows.h"

namespace embertable::input {

/// Serializes the contents of an id map, in the layout that IdMap::to_bytes documents.
std::string to_bytes(const KeyRows& rows);

/// Reverses to_bytes. Throws DataLoss naming the rule that the bytes break.
KeyRows key_rows_of(std::string_view bytes);

}  // namespace embertable::input
