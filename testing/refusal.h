#pragma once

#include <string>

namespace embertable {

/// For tests: what the Error that a call throws says; "" if it throws none.
template <class Error, class Call>
std::string refusal(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace embertable
