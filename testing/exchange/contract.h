#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "embertable/exchange.h"

namespace embertable::exchange_contract {

/// The hosts that this process has: all of them if they are threads, one if they are processes.
using Hosts = std::vector<std::unique_ptr<Exchange>>;

/// One implementation.
struct Kind {
  std::string name;
  std::function<Hosts()> make;
};

/// Returns the implementations that this program tries. Each program with contract_test.cc has its
/// own.
std::vector<Kind> kinds();

}  // namespace embertable::exchange_contract
