#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "embertable/errors.h"

namespace embertable {

/// Converts to the 32 bits that fields of messages have. Throws ValueError naming subject, field
/// and value.
inline std::int32_t int32_of(std::int64_t value, std::string_view subject, std::string_view field) {
  if (!std::in_range<std::int32_t>(value))
    throw ValueError(std::string(subject) + ": " + std::string(field) + " must fit 32 bits, got " +
                     std::to_string(value));
  return static_cast<std::int32_t>(value);
}

}  // namespace embertable
