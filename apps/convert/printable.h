#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace embertable::jobs {

/// Line ends and tabs of a text that is printed.
enum class Blanks : std::uint8_t { kEscape, kKeep };

/// Returns a text that is safe to print on a terminal. Keys, names and words of files may have any
/// bytes, and some bytes move the cursor, hide what follows or set the title of a window. Escapes
/// control characters, marks of the direction of writing, and bytes that are no UTF-8: "\x1b",
/// "\u202e". The rest stays as it is.
std::string printable(std::string_view text, Blanks blanks = Blanks::kEscape);

}  // namespace embertable::jobs
