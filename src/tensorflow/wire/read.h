#pragma once

#include <string_view>

#include "tensorflow/wire/fields.h"

namespace embertable::wire {

/// Reads `bytes` as the message named `name`; see `parse_configuration`.
template <class Message>
Message read(std::string_view bytes, std::string_view name);

}  // namespace embertable::wire
