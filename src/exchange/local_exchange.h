#pragma once

#include <memory>

#include "exchange/exchange.h"

namespace embertable {

/// One host, alone.
std::unique_ptr<Exchange> make_local_exchange();

}  // namespace embertable
