#pragma once

#include <string>

namespace embertable::tools {

/// What commands that read `best_epoch_of` their argument DIR say of it.
inline constexpr const char* kBestEpochIsRead =
    "directory of a run, whose best epoch is read if it has schedule.patience, else its latest "
    "step; or of a step";

/// Returns the directory to read of a run: that of the best epoch if the run has schedule.patience,
/// which is then said on stderr; else the given one.
std::string best_epoch_of(const std::string& run);

}  // namespace embertable::tools
