#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "embertable/exchange.h"

namespace embertable {

/// Returns the text that every host passes, by host. All hosts call together; `what` names the
/// texts in errors.
std::vector<std::string> all_gather(Exchange& exchange, std::string_view what,
                                    std::string_view text);

/// Returns the text that host 0 passes. All hosts call together.
std::string from_first(Exchange& exchange, std::string_view what, std::string_view text);

/// Throws ValueError on all hosts unless all pass the same lines, naming the first host that
/// differs from host 0, and its first line that does. All hosts call together; `what` names what
/// the lines describe: "configuration".
void require_equal(Exchange& exchange, std::string_view what, std::string_view lines);

/// Returns the first line in which two texts differ, of each; "nothing" for one that has ended or
/// has no line of the same field, where lines are "field = value".
std::pair<std::string, std::string> first_difference(const std::string& left,
                                                     const std::string& right);

}  // namespace embertable
