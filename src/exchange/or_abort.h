#pragma once

#include <string_view>

#include "embertable/exchange.h"
#include "embertable/executor.h"

namespace embertable {

/// Runs a part of a call that all hosts make together, with its rounds. If it throws, the others
/// are told, so that they throw GivenUp instead of waiting; after a GivenUp they know.
void or_abort(Exchange& exchange, FunctionRef<void()> part);

/// Tells the others for whoever throws the reason, which says more than an error about telling
/// them.
void tell(Exchange& exchange, std::string_view reason) noexcept;

}  // namespace embertable
