#pragma once

// For tests: threads that are processes to each other.

#include <memory>
#include <vector>

#include "exchange/threads_exchange.h"

namespace embertable {

/// Returns an exchange for each of them, to be driven by a thread of its own.
inline std::vector<std::shared_ptr<Exchange>> exchanges_of(std::int32_t processes) {
  std::vector<std::shared_ptr<Exchange>> all;
  for (std::unique_ptr<Exchange>& one : make_threads_exchange(processes))
    all.push_back(std::move(one));
  return all;
}

}  // namespace embertable
