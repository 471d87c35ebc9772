#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "checkpoint/manifest.h"
#include "embertable/embedding.h"

namespace embertable::checkpoint {

/// A variable of our own and the saved one that fills it. Tables by index, slot -1: the rows.
struct MatchedVariable {
  std::int64_t table = 0;
  std::int32_t slot = -1;
  std::int64_t saved_table = 0;
  std::int32_t saved_slot = -1;
};

/// Which of our variables a checkpoint fills, and which it does not, by name; of the chosen
/// tables only.
struct Matching {
  std::vector<MatchedVariable> read;
  std::vector<std::string> missing, extra, mismatched;
};

/// Throws KeyError for a chosen table that either side lacks, ValueError naming all tables that do
/// not fit (unless partial), or if there is nothing to read. `owner` of our tables, as "the
/// engine", and `directory` of the checkpoint are for messages.
Matching match(const std::string& owner, const std::vector<SavedTable>& ours,
               const std::vector<SavedTable>& saved, const RestoreOptions& options,
               const std::filesystem::path& directory);

}  // namespace embertable::checkpoint
