#include "apps/convert/saved_table_parts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

namespace embertable::jobs {

DataLoss misfit(const std::filesystem::path& directory, const std::string& rule) {
  return DataLoss(fmt::format("'{}': {}", directory.string(), rule));
}

const IdMap& saved_id_map(const std::map<std::string, IdMap>& id_maps, const std::string& ids,
                          std::string_view wanted_by, const std::filesystem::path& directory) {
  const auto found = id_maps.find(ids);
  if (found == id_maps.end())
    throw misfit(directory, fmt::format("{} must have the id map '{}', got none", wanted_by, ids));
  return found->second;
}

const IdMap& saved_keys(const SavedTableShape& table, const std::string& ids,
                        const std::map<std::string, IdMap>& id_maps) {
  const IdMap& map =
      saved_id_map(id_maps, ids, fmt::format("table '{}'", table.table), table.directory);
  // A table has at least one row, even if no key is known.
  if (const auto rows = std::max<std::int64_t>(1, map.num_rows()); table.rows != rows) {
    throw misfit(table.directory, fmt::format("table '{}' must have the {} rows of id map '{}', "
                                              "got {}",
                                              table.table, rows, ids, table.rows));
  }
  return map;
}

std::vector<std::string> saved_names(const std::string& ids, const IdMap& keys,
                                     const CallerState& state,
                                     const std::filesystem::path& directory) {
  const auto blob = state.blobs.find("names." + ids);
  if (blob == state.blobs.end()) return {};
  const nlohmann::json list = nlohmann::json::parse(blob->second, nullptr, false);
  if (!list.is_array() || std::ssize(list) != keys.num_keys()) {
    throw misfit(directory,
                 fmt::format("blob 'names.{0}' must be a list of {1} names, one for each key of "
                             "id map '{0}', got {2}",
                             ids, keys.num_keys(),
                             list.is_array() ? std::to_string(list.size()) : "no list"));
  }
  std::vector<std::string> names;
  for (const nlohmann::json& name : list)
    names.push_back(name.is_string() ? name.get<std::string>() : "");
  return names;
}

const DenseTensor* saved_vectors(const SavedTableShape& table, const CallerState& state) {
  const auto found = state.tensors.find(fmt::format("vectors.{}", table.table));
  if (found == state.tensors.end()) return nullptr;
  const DenseTensor& tensor = found->second;
  if (tensor.dtype != "F32" || tensor.shape != std::vector<std::int64_t>{table.rows, table.dim}) {
    throw misfit(table.directory,
                 fmt::format("tensor '{}' must be F32 [{}, {}] as table '{}' is, got {} [{}]",
                             found->first, table.rows, table.dim, table.table, tensor.dtype,
                             fmt::join(tensor.shape, ", ")));
  }
  return &tensor;
}

}  // namespace embertable::jobs
