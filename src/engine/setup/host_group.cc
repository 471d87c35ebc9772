#include "engine/setup/host_group.h"

#include "embertable/errors.h"
#include "exchange/all_gather.h"

namespace embertable::engine {

void HostGroup::meet() {
  if (!several() || met_) return;
  require_equal(*exchange_, "configuration", configuration_);
  met_ = true;
}

void HostGroup::or_tell(FunctionRef<void()> own) { several() ? run_or_tell(own) : own(); }

void HostGroup::run_or_tell(FunctionRef<void()> own) {
  try {
    own();
  } catch (const GivenUp&) {
    throw;
  } catch (const std::exception& error) {
    tell(error.what());
    throw;
  } catch (...) {
    tell("unknown error");
    throw;
  }
}

void HostGroup::together(const Stage& stage, FunctionRef<void()> share) {
  or_tell(share);
  if (several()) exchange_->agree("", stage);
}

void HostGroup::abandon(std::string_view reason) {
  if (several()) exchange_->abort(reason);
}

void HostGroup::tell(std::string_view reason) noexcept {
  try {
    abandon(reason);
  } catch (...) {  // the error that is thrown says more than one about telling the others
  }
}

std::string HostGroup::from_first(std::string_view stage, std::string_view text) {
  return several() ? embertable::from_first(*exchange_, stage, text) : std::string(text);
}

}  // namespace embertable::engine
