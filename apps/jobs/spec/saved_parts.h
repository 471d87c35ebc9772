#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apps/convert/saved_table_parts.h"
#include "embertable/checkpoint.h"
#include "embertable/id_map.h"
#include "embertable/serving.h"

namespace embertable::checkpoint {
class Reader;
}  // namespace embertable::checkpoint

// Checks that the parts of a saved run fit each other, as saved_table_parts.h does for one table.
// All calls throw DataLoss naming the checkpoint, both parts, the rule and the numbers.

namespace embertable::jobs {

struct Job;

/// The parts of a saved run. Borrowed.
struct SavedParts {
  const Job& job;

  /// The opened step. What is read here is read by it: a run may save the step anew, and a reader
  /// that opens the path again has to check what it finds.
  const checkpoint::Reader& reader;
  const CallerState& state;
  const std::map<std::string, IdMap>& ids;

  /// Returns the directory of the step.
  const std::filesystem::path& directory() const;

  /// Opens the tables of these features, or all.
  ServingEmbedding serve(std::optional<Nested<FeatureConfig>> features = {}) const;
};

/// The parts that a kind of model saves and whose sizes or contents follow from id maps.
struct PartsById {
  /// The keys of an id map.
  struct Keys {
    std::string ids;
    KeyKind kind = KeyKind::kInteger;
    std::int64_t shared_rows = 0;  ///< rows shared by keys without a row of their own
  };
  /// The tensors "NAME.splits" and "NAME.ids": for each row of one id map a list of rows of
  /// another.
  struct Lists {
    std::string name;
    std::string of;   ///< id map whose rows have lists
    std::string ids;  ///< id map whose rows are in the lists

    /// True if a run may lack them, as those do that earlier versions saved.
    bool optional = false;
  };
  /// An F32 tensor with a number for each row of an id map.
  struct Numbers {
    std::string name;
    std::string of;
  };
  std::vector<Keys> keys;  ///< every [ids] of the job
  std::vector<Lists> lists;
  std::vector<Numbers> numbers;
};

/// Lists, back to back.
struct SavedLists {
  std::vector<std::int64_t> splits;  ///< [lists + 1], rising from 0 to the number of ids
  std::vector<std::int32_t> ids;     ///< rows of the id map that Lists::ids names
};

/// Checks the parts of a run: each table has the dim that the job gives it and the rows of its id
/// map; id maps, lists and numbers are those that the job's kind of model saves; vectors have the
/// shape of their table, and names are those of the keys of their id map.
void check_saved_parts(const SavedParts& saved);

/// Returns a tensor of a model's own parameters, whose shape follows from the job.
const DenseTensor& saved_parameter(const CallerState& state, const std::string& name,
                                   std::string_view dtype, const std::vector<std::int64_t>& shape,
                                   const std::filesystem::path& directory);

/// True if the run has the lists.
bool is_saved(const SavedParts& saved, const PartsById::Lists& what);

SavedLists saved_lists(const SavedParts& saved, const PartsById::Lists& what);
std::vector<float> saved_numbers(const SavedParts& saved, const PartsById::Numbers& what);

}  // namespace embertable::jobs
