#pragma once

#include <string>
#include <string_view>

#include "embertable/exchange.h"
#include "embertable/executor.h"

namespace embertable::engine {

/// The processes that are the hosts of one engine, for the calls that they make together. Where
/// this process is all hosts, nothing is sent.
class HostGroup {
 public:
  /// `exchange` is borrowed; null: this process is all hosts. `configuration`: lines that must be
  /// equal on all hosts.
  HostGroup(Exchange* exchange, std::string configuration)
      : exchange_(exchange), configuration_(std::move(configuration)) {}

  bool several() const noexcept { return exchange_ != nullptr; }
  bool is_first() const noexcept { return !several() || exchange_->host() == 0; }

  /// Requires: several().
  Exchange& exchange() const noexcept { return *exchange_; }

  /// Compares the configurations, once. Every call that hosts make together begins with this.
  /// Throws ValueError on all hosts, naming the first one that differs and its first line that
  /// does.
  void meet();

  /// Runs what a host does by itself before the part of a call that all make together. If that
  /// throws, the call throws GivenUp on the others, with the host and its reason.
  void or_tell(FunctionRef<void()> own);

  /// Runs one host's share of a call, and returns when all have. If that of a host throws, the
  /// others throw GivenUp, which names the host and its reason. Every share makes the same
  /// exchanges; it does not call `together`. `stage` names the share in errors about hosts that do
  /// not come.
  void together(const Stage& stage, FunctionRef<void()> share);
  void together(std::string_view stage, FunctionRef<void()> share) {
    together(Stage{stage}, share);
  }

  /// Makes the call that the others make now or next fail on them. `tell` is for whoever throws the
  /// reason: that error says more than one about telling the others, which it does not throw.
  void abandon(std::string_view reason);
  void tell(std::string_view reason) noexcept;

  /// Returns what host 0 passes.
  std::string from_first(std::string_view stage, std::string_view text);

 private:
  Exchange* const exchange_;
  const std::string configuration_;
  bool met_ = false;
};

}  // namespace embertable::engine
