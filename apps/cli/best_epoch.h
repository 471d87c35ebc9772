#pragma once

#include <string>

namespace embertable::tools {

/// Returns the directory to read of a run: that of the best epoch if the run has schedule.patience,
/// which is then said on stderr; else the given one.
std::string best_epoch_of(const std::string& run);

}  // namespace embertable::tools
