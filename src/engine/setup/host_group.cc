#include "engine/setup/host_group.h"

#include "embertable/errors.h"
#include "exchange/all_gather.h"
#include "exchange/or_abort.h"

namespace embertable::engine {

void HostGroup::meet() {
  if (!several() || met_) return;
  require_equal(*exchange_, "configuration", configuration_);
  met_ = true;
}

void HostGroup::or_tell(FunctionRef<void()> own) { several() ? or_abort(*exchange_, own) : own(); }

void HostGroup::together(const Stage& stage, FunctionRef<void()> share) {
  or_tell([&] {
    share();
    if (several()) exchange_->agree("", stage);
  });
}

void HostGroup::abandon(std::string_view reason) {
  if (several()) exchange_->abort(reason);
}

void HostGroup::tell(std::string_view reason) noexcept {
  if (several()) embertable::tell(*exchange_, reason);
}

std::string HostGroup::from_first(std::string_view stage, std::string_view text) {
  return several() ? embertable::from_first(*exchange_, stage, text) : std::string(text);
}

}  // namespace embertable::engine
