#pragma once

#include <string>
#include <vector>

#include "apps/jobs/data/histories.h"
#include "apps/jobs/data/item_lists.h"
#include "apps/jobs/spec/toml_section.h"

namespace embertable::jobs {

/// What a job file says of users, their items and what those have.
struct HistoriesJob {
  HistoriesSpec data;
  HistoriesSplit split;
  std::vector<ItemListsSpec> attributes;

  /// The names of all ids: users, items, attributes.
  std::vector<std::string> ids() const;
};

/// Reads [data], [ids] and [split]. `rules`: the split rules that the model knows, the first one
/// without another word: "pairs" or "last". Throws ValueError as TomlSection.
HistoriesJob read_histories_job(TomlSection& root, const std::vector<std::string>& rules);

}  // namespace embertable::jobs
