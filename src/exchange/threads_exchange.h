#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "embertable/exchange.h"

namespace embertable {

/// Makes the exchanges of `hosts` hosts in one process, each to be driven by a thread of its own.
/// They wait for each other without a deadline. Throws ValueError unless hosts >= 1.
std::vector<std::unique_ptr<Exchange>> make_threads_exchange(std::int32_t hosts);

}  // namespace embertable
