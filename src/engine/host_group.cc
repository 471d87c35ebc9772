#include "engine/host_group.h"

#include <algorithm>

#include "embertable/errors.h"

namespace embertable::engine {
namespace {

/// Returns the line in which the texts first differ.
std::string first_difference(std::string_view ours, std::string_view theirs) {
  const auto at = std::mismatch(ours.begin(), ours.end(), theirs.begin(), theirs.end()).first;
  const auto line = [&](std::string_view text) {
    const auto place = std::min(static_cast<std::size_t>(at - ours.begin()), text.size());
    const std::size_t before = place == 0 ? std::string_view::npos : text.rfind('\n', place - 1);
    const std::size_t begin = before == std::string_view::npos ? 0 : before + 1;
    const std::size_t end = text.find('\n', begin);
    return "'" + std::string(text.substr(begin, end - begin)) + "'";
  };
  return line(theirs) + ", host 0 has " + line(ours);
}

}  // namespace

void HostGroup::meet() {
  if (several() && !met_) compare_configurations();
}

void HostGroup::compare_configurations() {
  const std::vector<std::string> all = gather("configurations", configuration_);
  for (std::size_t host = 1; host < all.size(); ++host) {
    if (all[host] == all[0]) continue;
    throw ValueError("hosts must have one configuration: host " + std::to_string(host) + " has " +
                     first_difference(all[0], all[host]));
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
  if (!several()) return std::string(text);
  return gather(stage, is_first() ? text : std::string_view())[0];
}

std::vector<std::string> HostGroup::gather(std::string_view stage, std::string_view text) {
  const ByteSpan mine = std::as_bytes(std::span(text));
  const std::vector<ByteSpan> send(exchange_->hosts(), mine);
  std::vector<ByteSpan> received(send.size());
  exchange_->start(Channel::kStep, {stage}, send);
  exchange_->finish(Channel::kStep, received);
  std::vector<std::string> all;
  for (const ByteSpan bytes : received)
    all.emplace_back(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return all;
}

}  // namespace embertable::engine
