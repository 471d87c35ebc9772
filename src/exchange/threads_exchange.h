#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "exchange/exchange.h"

namespace embertable {

/// Makes the exchanges of `hosts` hosts in one process, each to be driven by a thread of its own.
/// Throws ValueError unless hosts >= 1.
std::vector<std::unique_ptr<Exchange>> make_threads_exchange(std::int32_t hosts,
                                                             std::chrono::milliseconds timeout);

}  // namespace embertable
