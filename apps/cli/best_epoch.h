#pragma once

#include <string>
#include <vector>

namespace embertable::tools {

/// What commands that read `best_epoch_of` their argument DIR say of it.
inline constexpr const char* kBestEpochIsRead =
    "directory of a run, whose best epoch is read if it has schedule.patience, else its latest "
    "step; or of a step";

/// Returns the directory to read of a run: that of the best epoch if the run has schedule.patience,
/// which is then said on stderr; else the given one. Calls say_skipped with it.
std::string best_epoch_of(const std::string& run);

/// Says on stderr which steps of a run are newer than the one that is read but cannot be opened,
/// and returns why. Throws what opening a step throws.
std::vector<std::string> say_skipped(const std::string& run);

}  // namespace embertable::tools
