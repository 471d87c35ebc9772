#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "apps/jobs/spec/change.h"

namespace embertable::jobs {
class SkipBad;
}

namespace embertable::tools {

// Options that several commands about jobs have.

/// Adds --data: where the files are that a job names.
CLI::Option* add_data(CLI::App& command, std::string& root);

/// Adds --set, whose values are KEY=VALUE.
CLI::Option* add_changes(CLI::App& command, std::vector<std::string>& changes,
                         const std::string& help);

/// Returns the changes that --set names.
std::vector<jobs::Change> changes_of(const std::vector<std::string>& set);

/// Returns a change of the key which an option of its own sets.
jobs::Change change_by(const std::string& option, const std::string& key, const std::string& value);

/// Adds --skip-bad: how many broken lines are left out.
CLI::Option* add_skip_bad(CLI::App& command, jobs::SkipBad& skip_bad);

/// Adds --threads.
CLI::Option* add_threads(CLI::App& command, std::int32_t& threads,
                         const std::string& help = "number of threads; 0: one for each CPU");

}  // namespace embertable::tools
