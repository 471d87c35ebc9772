#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "checkpoint/manifest.h"
#include "embertable/embedding.h"

namespace embertable::checkpoint {

/// One of our variables and the saved variable that fills it. Tables are given by index; slot -1
/// means the rows.
struct MatchedVariable {
  std::int64_t table = 0;
  std::int32_t slot = -1;
  std::int64_t saved_table = 0;
  std::int32_t saved_slot = -1;
  bool grown = false;  ///< ours has more rows
};

/// The names of our variables that a checkpoint fills and of those that it does not, among the
/// chosen tables.
struct Matching {
  std::vector<MatchedVariable> read;
  std::vector<std::string> missing, extra, mismatched;
  std::vector<std::string> grown;  ///< tables
};

/// The holder of our tables.
struct Owner {
  std::string name;       ///< for messages, such as "the engine"
  bool can_grow = false;  ///< tables may have more rows than were saved
};

/// Throws KeyError for a chosen table that either side lacks; ValueError for tables to grow whose
/// owner cannot, if there is nothing to read, or naming all tables that do not fit (unless
/// partial). `directory` of the checkpoint is for messages.
Matching match(const Owner& owner, const std::vector<SavedTable>& ours,
               const std::vector<SavedTable>& saved, const RestoreOptions& options,
               const std::filesystem::path& directory);

}  // namespace embertable::checkpoint
