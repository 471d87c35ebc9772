#pragma once

#include <string_view>

#include "tensorflow/wire/fields.h"

namespace embertable::wire {

/// Reads `bytes` as the message named `name`; see `parse_configuration`.
template <class Message>
Message read(std::string_view bytes, std::string_view name);

/// True if this is well-formed UTF-8: no overlong forms, no surrogates. Source: RFC 3629.
bool is_utf8(std::string_view text) noexcept;

}  // namespace embertable::wire
