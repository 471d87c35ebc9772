#pragma once

#include <cerrno>
#include <filesystem>
#include <string>
#include <system_error>

#include "embertable/errors.h"

namespace embertable::checkpoint {

/// Throws IoError naming path, operation and the error number's text.
[[noreturn]] inline void fail(const std::filesystem::path& path, const std::string& operation,
                              int cause) {
  throw IoError(path.string() + ": cannot " + operation + ": " +
                std::generic_category().message(cause));
}

/// Repeats a call that a signal interrupted.
template <class Call>
auto retry(Call call) {
  for (;;) {
    const auto result = call();
    if (result >= 0 || errno != EINTR) return result;
  }
}

}  // namespace embertable::checkpoint
