#pragma once

#include <cstdint>

namespace embertable::input {

/// Stores and loads the bytes of an unsigned number, lowest first, whatever the machine's order.
template <class Unsigned>
void store_little_endian(Unsigned value, char* to) {
  for (unsigned i = 0; i < sizeof value; ++i) to[i] = static_cast<char>(value >> (8 * i));
}

template <class Unsigned>
Unsigned load_little_endian(const char* from) {
  Unsigned value = 0;
  for (unsigned i = 0; i < sizeof value; ++i) {
    value |= static_cast<Unsigned>(static_cast<unsigned char>(from[i])) << (8 * i);
  }
  return value;
}

}  // namespace embertable::input
