#include "jobs/saved_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "embertable/errors.h"
#include "jobs/saved_tensor.h"

namespace embertable::jobs {
namespace {

DataLoss misfit(const std::filesystem::path& directory, const std::string& rule) {
  return DataLoss(fmt::format("'{}': {}", directory.string(), rule));
}

const IdMap& id_map(const std::map<std::string, IdMap>& id_maps, const std::string& ids,
                    std::string_view wanted_by, const std::filesystem::path& directory) {
  const auto found = id_maps.find(ids);
  if (found == id_maps.end())
    throw misfit(directory, fmt::format("{} must have the id map '{}', got none", wanted_by, ids));
  return found->second;
}

std::int64_t rows_of(const SavedParts& saved, const std::string& ids) {
  return id_map(saved.ids, ids, "the job", saved.directory).num_rows();
}

}  // namespace

SavedLists saved_lists(const SavedParts& saved, const PartsById::Lists& what) {
  const std::int64_t lists = rows_of(saved, what.of), rows = rows_of(saved, what.ids);
  SavedLists found{saved_values<std::int64_t>(saved.state, what.name + ".splits"),
                   saved_values<std::int32_t>(saved.state, what.name + ".ids")};
  const auto& [splits, ids] = found;
  if (std::ssize(splits) != lists + 1 || splits.front() != 0 || splits.back() != std::ssize(ids) ||
      !std::is_sorted(splits.begin(), splits.end())) {
    throw misfit(
        saved.directory,
        fmt::format(
            "tensor '{0}.splits' must be {1} numbers that rise from 0 to {2}, for the "
            "rows of id map '{3}' and the values of tensor '{0}.ids', got {4} numbers{5}",
            what.name, lists + 1, ids.size(), what.of, splits.size(),
            splits.empty() ? "" : fmt::format(" from {} to {}", splits.front(), splits.back())));
  }
  const auto bad =
      std::find_if(ids.begin(), ids.end(), [&](std::int32_t id) { return id < 0 || id >= rows; });
  if (bad != ids.end()) {
    throw misfit(saved.directory,
                 fmt::format("tensor '{}.ids' must be rows 0 <= row < {} of id map '{}', got {} at "
                             "position {}",
                             what.name, rows, what.ids, *bad, bad - ids.begin()));
  }
  return found;
}

std::vector<float> saved_numbers(const SavedParts& saved, const PartsById::Numbers& what) {
  std::vector<float> numbers = saved_values<float>(saved.state, what.name);
  if (const std::int64_t rows = rows_of(saved, what.of); std::ssize(numbers) != rows) {
    throw misfit(saved.directory,
                 fmt::format("tensor '{}' must have {} numbers, one for each row of id map '{}', "
                             "got {}",
                             what.name, rows, what.of, numbers.size()));
  }
  return numbers;
}

}  // namespace embertable::jobs
