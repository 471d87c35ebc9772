#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "apps/doctor/folder.h"
#include "apps/doctor/machine.h"

namespace embertable::doctor {

/// What was found about one thing.
struct Finding {
  std::string subject;  ///< "huge pages"
  std::string found;    ///< what there is, in one line
  std::string advice;   ///< what to change and what it costs; "" if nothing has to be

  bool good() const noexcept { return advice.empty(); }
};

// Each of these judges facts, and asks nobody.
Finding judge_levels(const Machine& machine);
Finding judge_threads(const Machine& machine);
Finding judge_huge_pages(const Machine& machine);
Finding judge_memory(const Machine& machine);
Finding judge_limits(const Machine& machine);
Finding judge_folder(const Folder& folder);

/// Says what MPI library this process would use; loads it. Its absence is good: one host needs
/// none.
Finding look_for_mpi();

/// Examines this machine, and the folder as a place for runs. The version comes first.
std::vector<Finding> examine(const std::filesystem::path& folder);

}  // namespace embertable::doctor
