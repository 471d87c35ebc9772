#include "exchange/all_gather.h"

#include <sstream>

#include "embertable/errors.h"
#include "exchange/or_abort.h"

namespace embertable {
namespace {

/// Returns "a.b = " of a line "a.b = 1", and "" of one without a field.
std::string field_of(const std::string& line) {
  const std::size_t end = line.find(" = ");
  return end == std::string::npos ? "" : line.substr(0, end + 3);
}

bool has_line_of(const std::string& lines, const std::string& field) {
  return lines.starts_with(field) || lines.find('\n' + field) != std::string::npos;
}

}  // namespace

std::vector<std::string> all_gather(Exchange& exchange, std::string_view what,
                                    std::string_view text) {
  const std::vector<ByteSpan> send(exchange.hosts(), std::as_bytes(std::span(text)));
  std::vector<ByteSpan> received(send.size());
  or_abort(exchange, [&] {
    exchange.start(Channel::kStep, {what}, send);
    exchange.finish(Channel::kStep, received);
  });
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
  const std::string nothing = "nothing";
  std::istringstream lines(left), other_lines(right);
  std::string line, other;
  do {
    if (!std::getline(lines, line)) line = nothing;
    if (!std::getline(other_lines, other)) other = nothing;
  } while (line == other && (lines || other_lines));
  // Lines after one that only one text has stand beside others than their own.
  const std::string own = field_of(line), theirs = field_of(other);
  if (own == theirs) return {line, other};
  if (!own.empty() && !has_line_of(right, own)) return {line, nothing};
  if (!theirs.empty() && !has_line_of(left, theirs)) return {nothing, other};
  return {line, other};
}

}  // namespace embertable
