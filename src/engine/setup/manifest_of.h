#pragma once

#include <cstdint>

#include "checkpoint/manifest.h"
#include "engine/setup/setup.h"

namespace embertable::engine {

/// Returns the manifest of a checkpoint of this engine after `step` updates, without its files.
checkpoint::Manifest manifest_of(const Setup& setup, std::int64_t step);

}  // namespace embertable::engine
