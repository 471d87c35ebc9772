#pragma once

#include <cstdint>
#include <new>
#include <string_view>
#include <vector>

#include "embertable/exchange.h"

namespace embertable {

/// Makes what hosts throw after one of them gave up, even if there is no memory for the reason:
/// they are in step again, and another error would make them give up anew.
class Telling {
 public:
  explicit Telling(std::int32_t hosts) {
    for (std::int32_t host = 0; host < hosts; ++host)
      without_reason_.emplace_back(host, "gave up, and there is no memory for its reason");
  }

  GivenUp of(std::int32_t host, std::string_view reason) const noexcept {
    try {
      return {host, reason};
    } catch (const std::bad_alloc&) {
      return without_reason_[static_cast<std::size_t>(host)];
    }
  }

 private:
  std::vector<GivenUp> without_reason_;  ///< by host
};

}  // namespace embertable
