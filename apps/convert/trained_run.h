#pragma once

#include <filesystem>

namespace embertable::jobs {

/// Throws ValueError for a run that `embertable train` saved, whose newest step must be its own:
/// what trains and predicts takes that one. Steps of rows in int8, which none trains, are no such
/// run.
void refuse_trained_run(const std::filesystem::path& out);

}  // namespace embertable::jobs
