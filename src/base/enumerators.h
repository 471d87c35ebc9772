// Checks of enumerators that a caller gave: a cast makes any number one.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "embertable/errors.h"

namespace embertable {

/// Throws ValueError "<subject>: unknown value N" unless the value is one of 0..last.
template <class E>
void check_enumerator(E value, E last, std::string_view subject) {
  const auto number = static_cast<std::int64_t>(value);
  if (number >= 0 && number <= static_cast<std::int64_t>(last)) return;
  throw ValueError(std::string(subject) + ": unknown value " + std::to_string(number));
}

}  // namespace embertable
