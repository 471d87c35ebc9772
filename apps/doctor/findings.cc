#include "apps/doctor/findings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "embertable/errors.h"
#include "embertable/version.h"
#include "exchange/mpi/library.h"
#include "exchange/mpi/loader.h"

namespace embertable::doctor {
namespace {

constexpr std::int64_t kFewFiles = 256;
constexpr double kMebi = 1 << 20, kGibi = 1 << 30;

std::string gibi(std::int64_t bytes) {
  return fmt::format("{:.1f} GiB", static_cast<double>(bytes) / kGibi);
}

Finding version() {
#if defined(__clang__)
  const std::string compiler = "clang " __clang_version__;
#else
  const std::string compiler = "gcc " __VERSION__;
#endif
  return {"version",
          fmt::format("embertable {}, numerics {}, {}", kVersion, kNumericsVersion, compiler), ""};
}

}  // namespace

Finding judge_levels(const Machine& machine) {
  Finding finding{"SIMD level", "", ""};
  const std::string best = machine.levels.back();
  finding.found = fmt::format("{} of {}, {}", machine.level.empty() ? "none" : machine.level,
                              fmt::join(machine.levels, ", "),
                              machine.cpu.empty() ? "unknown CPU" : machine.cpu);
  if (!machine.wrong_level.empty()) {
    finding.advice = machine.wrong_level + "; until then every engine refuses to start";
  } else if (machine.level != best) {
    finding.advice = fmt::format(
        "unset EMBERTABLE_SIMD to use {}: the results stay the same, and steps get faster", best);
  } else if (best == "scalar") {
    finding.advice =
        "run where the CPU has AVX2: the results are the same here, and steps take several times "
        "as long";
  }
  return finding;
}

Finding judge_threads(const Machine& machine) {
  Finding finding{"threads", fmt::format("{} CPUs", machine.cpus), ""};
  std::int32_t usable = machine.cpus;
  if (machine.allowed > 0 && machine.allowed < usable) {
    usable = machine.allowed;
    finding.found += fmt::format(", of which this process may run on {}", usable);
  }
  if (machine.quota > 0 && std::ceil(machine.quota) < usable) {
    usable = static_cast<std::int32_t>(std::ceil(machine.quota));
    finding.found += fmt::format(", the time of {:.3g} for this control group", machine.quota);
  }
  if (usable < machine.cpus) {
    finding.advice = fmt::format(
        "pass --threads {}, in programs threads={}: an engine starts a thread for each CPU, and "
        "more threads than that take turns",
        usable, usable);
  }
  return finding;
}

Finding judge_huge_pages(const Machine& machine) {
  Finding finding{"huge pages", "", ""};
  const std::string mode = machine.huge_pages.empty() ? "not offered" : machine.huge_pages;
  finding.found = fmt::format("{}; {:.0f} of {:.0f} MiB got them", mode,
                              static_cast<double>(machine.tried_in_huge) / kMebi,
                              static_cast<double>(machine.tried_bytes) / kMebi);
  if (machine.huge_pages == "never") {
    finding.advice =
        "as root: echo madvise > /sys/kernel/mm/transparent_hugepage/enabled; lookups in large "
        "tables take 1.2 to 2 times as long without";
  } else if (machine.huge_pages.empty()) {
    finding.advice =
        "run on a kernel with transparent huge pages: lookups in large tables take 1.2 to 2 times "
        "as long without";
  } else if (machine.tried_in_huge * 2 < machine.tried_bytes) {
    finding.advice =
        "free memory, or as root: echo 1 > /proc/sys/vm/compact_memory; the kernel has no whole "
        "huge pages left, and lookups in large tables take 1.2 to 2 times as long without";
  }
  return finding;
}

Finding judge_memory(const Machine& machine) {
  Finding finding{
      "memory",
      fmt::format("{} of {} are available", gibi(machine.available), gibi(machine.memory)), ""};
  if (machine.group_limit > 0 && machine.group_limit < machine.memory) {
    const std::int64_t left = std::max<std::int64_t>(machine.group_limit - machine.group_used, 0);
    finding.found += fmt::format("; this control group may use {}, and has {} left",
                                 gibi(machine.group_limit), gibi(left));
    if (left < machine.group_limit / 10) {
      finding.advice =
          "raise the memory limit of the container: a process that goes beyond it is killed";
    }
  } else if (machine.available < machine.memory / 10) {
    finding.advice = "end other programs: a table that does not fit is killed or swapped out";
  }
  return finding;
}

Finding judge_limits(const Machine& machine) {
  Finding finding{"limits", "", ""};
  std::vector<std::string> found, advice;
  if (machine.address_space > 0) {
    found.push_back(fmt::format("address space {}", gibi(machine.address_space)));
    advice.emplace_back("ulimit -v unlimited: mapped files and guard pages count as well");
  }
  if (machine.file_bytes > 0) {
    found.push_back(fmt::format("files of at most {}", gibi(machine.file_bytes)));
    advice.emplace_back("ulimit -f unlimited: a larger table cannot be saved");
  }
  if (machine.open_files > 0) {
    found.push_back(fmt::format("{} open files", machine.open_files));
    if (machine.open_files < kFewFiles) {
      advice.push_back(
          fmt::format("ulimit -n {}: mapped runs hold a file for each shard open", kFewFiles));
    }
  }
  if (machine.strict_commit) {
    found.emplace_back("mapped memory counts as used");
    advice.emplace_back(
        "as root: sysctl vm.overcommit_memory=0; as it is, memory that is mapped and not yet used "
        "may be refused");
  }
  finding.found = found.empty() ? "none" : fmt::format("{}", fmt::join(found, ", "));
  finding.advice = fmt::format("{}", fmt::join(advice, "; "));
  return finding;
}

Finding judge_folder(const Folder& folder) {
  Finding finding{"folder", "", ""};
  finding.found = fmt::format("{}: {}, {} free", folder.path.string(),
                              folder.type.empty() ? "unknown file system" : folder.type,
                              gibi(folder.free_bytes));
  if (!folder.unusable.empty()) {
    finding.advice = "choose another folder for runs: " + folder.unusable;
    return finding;
  }
  std::vector<std::string> works, fails;
  for (const Tried& tried : folder.tried) {
    if (tried.error.empty()) {
      works.push_back(tried.what);
    } else {
      fails.push_back(tried.what + " (" + tried.error + ")");
    }
  }
  finding.found += fmt::format("; can {}", fmt::join(works, ", "));
  if (!fails.empty()) {
    finding.advice = fmt::format(
        "choose another folder for runs: this file system cannot {}, which saving needs",
        fmt::join(fails, ", "));
  } else if (folder.type == "tmpfs" || folder.type == "ramfs") {
    finding.advice =
        "choose another folder for runs that must last: this one is memory, takes the tables' "
        "share of it, and is empty after a restart";
  }
  return finding;
}

Finding look_for_mpi() {
  Finding finding{"MPI", "", ""};
  try {
    finding.found = mpi::library().version();
  } catch (const StateError&) {
    finding.found =
        "none in this process; mpirun and srun bring theirs, and one machine needs none";
  } catch (const IoError& error) {
    finding.found = "cannot be used";
    finding.advice =
        fmt::format("set EMBERTABLE_MPI_LIBRARY to a library that can: {}", error.what());
  }
  return finding;
}

std::vector<Finding> examine(const std::filesystem::path& folder) {
  const Machine machine = look_at_machine();
  return {version(),
          judge_levels(machine),
          judge_threads(machine),
          judge_huge_pages(machine),
          judge_memory(machine),
          judge_limits(machine),
          judge_folder(look_at_folder(folder)),
          look_for_mpi()};
}

}  // namespace embertable::doctor
