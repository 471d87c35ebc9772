// Checks of enumerators that a caller gave: a cast makes any number one.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "embertable/errors.h"

namespace embertable {

/// The enumerators of E, whose numbers follow each other: Enumerators<E>::kFirst and kLast. Each
/// enumeration that is checked has one specialisation, in the file that checks it, or in a header
/// if several files do.
template <class E>
struct Enumerators;

/// What a specialisation derives from.
template <auto first, auto last>
struct EnumeratorRange {
  static constexpr auto kFirst = first, kLast = last;
};

template <class E>
constexpr bool is_enumerator(E value) noexcept {
  return value >= Enumerators<E>::kFirst && value <= Enumerators<E>::kLast;
}

/// Throws ValueError "<subject>: unknown value N" unless the value is an enumerator.
template <class E>
void check_enumerator(E value, std::string_view subject) {
  if (is_enumerator(value)) return;
  throw ValueError(std::string(subject) + ": unknown value " +
                   std::to_string(static_cast<std::int64_t>(value)));
}

}  // namespace embertable
