#include "exchange/or_abort.h"

#include <exception>

#include "embertable/errors.h"

namespace embertable {

void tell(Exchange& exchange, std::string_view reason) noexcept {
  try {
    exchange.abort(reason);
  } catch (...) {  // whoever called throws the reason
  }
}

void or_abort(Exchange& exchange, FunctionRef<void()> part) {
  try {
    part();
  } catch (const GivenUp&) {
    throw;
  } catch (const std::exception& error) {
    tell(exchange, error.what());
    throw;
  } catch (...) {
    tell(exchange, "unknown error");
    throw;
  }
}

}  // namespace embertable
