#include "embertable/exchange.h"

#include <algorithm>

namespace embertable {

std::string to_string(const Stage& stage) {
  std::string text(stage.what);
  if (stage.step >= 0) text += " of step " + std::to_string(stage.step);
  return text;
}

Exchange::~Exchange() = default;

void Exchange::agree(std::string_view error, const Stage& stage) {
  const auto count = static_cast<std::size_t>(hosts());
  if (count == 1) {
    if (!error.empty()) throw StateError("host 0: " + std::string(error));
    return;
  }
  agreement_.resize(2 * count);
  const std::span<ByteSpan> send = std::span(agreement_).first(count);
  const std::span<ByteSpan> received = std::span(agreement_).last(count);
  std::ranges::fill(send, std::as_bytes(std::span(error)));
  start(Channel::kAgreement, stage, send);
  finish(Channel::kAgreement, received);
  for (std::size_t host = 0; host < count; ++host) {
    if (received[host].empty()) continue;
    const auto* text = reinterpret_cast<const char*>(received[host].data());
    throw StateError("host " + std::to_string(host) + ": " +
                     std::string(text, received[host].size()));
  }
}

}  // namespace embertable
