#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace embertable::doctor {

/// What the system says of this machine and of the limits of this process. A limit of 0: there is
/// none.
struct Machine {
  std::string cpu;                  ///< model name, "" where the system does not say
  std::vector<std::string> levels;  ///< SIMD levels that it runs, rising
  std::string level;                ///< the level that is used, "" if `wrong_level` says why not
  std::string wrong_level;          ///< what is wrong with EMBERTABLE_SIMD

  std::int32_t cpus = 0;     ///< CPUs that are online, as many threads as an engine starts
  std::int32_t allowed = 0;  ///< CPUs that this process may run on
  double quota = 0;          ///< CPUs whose time its control group may use

  std::string huge_pages;          ///< "always", "madvise", "never", or "" without such pages
  std::int64_t tried_bytes = 0;    ///< memory that was mapped and touched as a table is
  std::int64_t tried_in_huge = 0;  ///< part of it that is in huge pages

  std::int64_t memory = 0;         ///< bytes of the machine
  std::int64_t available = 0;      ///< bytes of it that programs can still get
  std::int64_t group_limit = 0;    ///< bytes that the control group may use
  std::int64_t group_used = 0;     ///< bytes that it uses
  std::int64_t address_space = 0;  ///< bytes that this process may map (ulimit -v)
  std::int64_t file_bytes = 0;     ///< bytes of the largest file that it may write (ulimit -f)
  std::int64_t open_files = 0;     ///< files that it may hold open (ulimit -n)
  bool strict_commit = false;      ///< vm.overcommit_memory is 2: mapped memory counts as used
};

/// Asks the system.
Machine look_at_machine();

/// Returns the word in brackets of a text such as "always [madvise] never", "" if there is none.
std::string chosen_word(const std::string& text);

/// Returns the CPUs of a text such as "200000 100000" (microseconds of each period), 0 for "max".
double quota_of(const std::string& text);

}  // namespace embertable::doctor
