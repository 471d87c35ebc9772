#include "exchange/all_gather.h"

#include <sstream>

#include "embertable/errors.h"

namespace embertable {

std::vector<std::string> all_gather(Exchange& exchange, std::string_view what,
                                    std::string_view text) {
  const std::vector<ByteSpan> send(exchange.hosts(), std::as_bytes(std::span(text)));
  std::vector<ByteSpan> received(send.size());
  exchange.start(Channel::kStep, {what}, send);
  exchange.finish(Channel::kStep, received);
  std::vector<std::string> all;
  for (const ByteSpan bytes : received)
    all.emplace_back(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return all;
}

std::string from_first(Exchange& exchange, std::string_view what, std::string_view text) {
  return all_gather(exchange, what, exchange.host() == 0 ? text : std::string_view())[0];
}

void require_equal(Exchange& exchange, std::string_view what, std::string_view lines) {
  const std::vector<std::string> all =
      all_gather(exchange, "comparison of the " + std::string(what), lines);
  for (std::size_t host = 1; host < all.size(); ++host) {
    if (all[host] == all[0]) continue;
    const auto [theirs, first] = first_difference(all[host], all[0]);
    throw ValueError("hosts must have one " + std::string(what) + ": host " + std::to_string(host) +
                     " has '" + theirs + "', host 0 has '" + first + "'");
  }
}

std::pair<std::string, std::string> first_difference(const std::string& left,
                                                     const std::string& right) {
  std::istringstream lines(left), other_lines(right);
  std::string line, other;
  do {
    if (!std::getline(lines, line)) line = "nothing";
    if (!std::getline(other_lines, other)) other = "nothing";
  } while (line == other && (lines || other_lines));
  return {line, other};
}

}  // namespace embertable
