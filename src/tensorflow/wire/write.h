#pragma once

#include <string>

#include "tensorflow/wire/fields.h"

namespace embertable::wire {

/// Returns the bytes of the message named `name`; see `serialize`.
template <class Message>
std::string write(const Message& message, std::string_view name);

}  // namespace embertable::wire
