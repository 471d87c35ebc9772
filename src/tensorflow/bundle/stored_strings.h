#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "embertable/executor.h"

namespace embertable::formats {

/// The bytes of a stored tensor of strings: lengths, their checksum, and then the texts. Borrowed.
struct StoredStrings {
  std::string_view bytes;
  std::uint64_t count = 0;       ///< number of strings
  std::uint32_t masked_sum = 0;  ///< checksum of the tensor's entry
  bool swapped = false;          ///< the file has the other byte order

  /// Throws an error that says what is wrong, and at which of the bytes.
  FunctionRef<void(const std::string& what, std::int64_t at)> refuse;
};

/// Returns the strings. Calls `refuse` for bytes that are damaged.
std::vector<std::string> strings_of(const StoredStrings& stored);

}  // namespace embertable::formats
