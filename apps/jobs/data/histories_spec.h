#pragma once

#include <string>
#include <vector>

#include "apps/jobs/data/histories.h"
#include "apps/jobs/data/item_lists.h"
#include "apps/jobs/spec/toml_section.h"

namespace embertable::jobs {

/// Sections of a job file about users, their items and attributes of items.
struct HistoriesJob {
  HistoriesSpec data;
  HistoriesSplit split;
  std::vector<ItemListsSpec> attributes;

  /// Returns the names of all ids: users, items, attributes.
  std::vector<std::string> ids() const;
};

/// Reads [data], [ids] and [split]. `rules` are the split rules that the model knows, "pairs" or
/// "last"; the first one is the default. Throws ValueError as TomlSection.
HistoriesJob read_histories_job(TomlSection& root, const std::vector<std::string>& rules);

}  // namespace embertable::jobs
