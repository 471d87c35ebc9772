#include "engine/setup/host_group.h"

#include "embertable/errors.h"
#include "exchange/all_gather.h"

namespace embertable::engine {

void HostGroup::meet() {
  if (several() && !met_) compare_configurations();
}

void HostGroup::compare_configurations() {
  const std::vector<std::string> all = all_gather(*exchange_, "configurations", configuration_);
  for (std::size_t host = 1; host < all.size(); ++host) {
    if (all[host] == all[0]) continue;
    const auto [theirs, first] = first_difference(all[host], all[0]);
    throw ValueError("hosts must have one configuration: host " + std::to_string(host) + " has '" +
                     theirs + "', host 0 has '" + first + "'");
  }
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
