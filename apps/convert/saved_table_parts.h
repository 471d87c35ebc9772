#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "embertable/checkpoint.h"
#include "embertable/errors.h"
#include "embertable/id_map.h"

// Checks that the parts of one checkpoint fit each other. Even if every checksum is right, parts
// may come from different runs; a row that one part names then lies outside of another. Every
// reader of a part gets it from here. All calls throw DataLoss naming the checkpoint, both parts,
// the rule and the numbers.

namespace embertable::jobs {

/// Returns the error of parts that do not fit each other.
DataLoss misfit(const std::filesystem::path& directory, const std::string& rule);

/// Returns the id map of this name, which `wanted_by` needs.
const IdMap& saved_id_map(const std::map<std::string, IdMap>& id_maps, const std::string& ids,
                          std::string_view wanted_by, const std::filesystem::path& directory);

/// A table as its checkpoint describes it, which parts about its rows must fit.
struct SavedTableShape {
  std::string_view table;
  std::int64_t rows;
  std::int64_t dim;
  const std::filesystem::path& directory;  ///< directory of the step
};

/// Returns the id map of this name, whose rows are those of the table.
const IdMap& saved_keys(const SavedTableShape& table, const std::string& ids,
                        const std::map<std::string, IdMap>& id_maps);

/// Returns the blob "names.IDS": a name for each key of the map, "" for a key without one. Empty if
/// there is no such blob.
std::vector<std::string> saved_names(const std::string& ids, const IdMap& keys,
                                     const CallerState& state,
                                     const std::filesystem::path& directory);

/// Returns the tensor "vectors.TABLE", F32 of the shape of the table, or null if there is none.
const DenseTensor* saved_vectors(const SavedTableShape& table, const CallerState& state);

}  // namespace embertable::jobs
