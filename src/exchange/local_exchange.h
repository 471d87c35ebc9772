#pragma once

#include <memory>

#include "embertable/exchange.h"

namespace embertable {

/// Makes the exchange of a single host.
std::unique_ptr<Exchange> make_local_exchange();

}  // namespace embertable
