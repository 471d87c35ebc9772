#pragma once

#include <string>

#include "tensorflow/wire/fields.h"

namespace embertable::wire {

/// Returns the text form of a message; see `to_text`.
template <class Message>
std::string print(const Message& message);

}  // namespace embertable::wire
