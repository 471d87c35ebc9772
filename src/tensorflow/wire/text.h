#pragma once

#include <string>

#include "tensorflow/wire/fields.h"

namespace embertable::wire {

/// The text form of a message, as `to_text` says.
template <class Message>
std::string print(const Message& message);

}  // namespace embertable::wire
