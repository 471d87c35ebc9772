#pragma once

#include <string>

#include "tensorflow/wire/fields.h"

namespace embertable::wire {

/// The bytes of the message named `name`, as `serialize` says.
template <class Message>
std::string write(const Message& message, std::string_view name);

}  // namespace embertable::wire
