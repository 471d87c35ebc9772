#pragma once

#include <string>

namespace embertable::bench {

/// Runs every lane on small workloads, with 1, 2 and 3 threads, and compares activations, rows and
/// slots with those of a scalar loop, bit for bit. Returns what differs, one line each: empty if
/// all is well.
std::string check_lanes();

}  // namespace embertable::bench
