#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

/// What libFuzzer calls with bytes that it makes up. Must neither crash nor hang nor take memory
/// out of proportion; aborts if what it reads does not come back when it is written.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace embertable::fuzz {

/// Good inputs to start from.
std::vector<std::string> seeds();

}  // namespace embertable::fuzz
