#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "embertable/checkpoint.h"
#include "embertable/id_map.h"

namespace embertable::checkpoint {
struct Manifest;
}  // namespace embertable::checkpoint

// What the parts of one checkpoint promise each other. Every checksum may be right and the parts
// still be of different runs: a row that one part names then lies outside of another. Each reader
// of a part gets it from here. All calls throw DataLoss naming the checkpoint, both parts, the rule
// and the numbers.

namespace embertable::jobs {

struct Job;

/// The parts of a saved run besides the rows of its tables. Borrowed.
struct SavedParts {
  const Job& job;
  const std::filesystem::path& directory;  ///< of the step
  const CallerState& state;
  const std::map<std::string, IdMap>& ids;
};

/// The parts that a kind of model saves and that id maps give their sizes or contents.
struct PartsById {
  /// The keys of an id map.
  struct Keys {
    std::string ids;
    KeyKind kind = KeyKind::kInteger;
    std::int64_t shared_rows = 0;  ///< of keys without a row of their own
  };
  /// Tensors "NAME.splits" and "NAME.ids": for each row of one id map a list of rows of another.
  struct Lists {
    std::string name;
    std::string of;   ///< whose rows have lists
    std::string ids;  ///< whose rows are in the lists
  };
  /// A tensor of F32: a number for each row of an id map.
  struct Numbers {
    std::string name;
    std::string of;
  };
  std::vector<Keys> keys;  ///< every [ids] of the job
  std::vector<Lists> lists;
  std::vector<Numbers> numbers;
};

/// Lists back to back.
struct SavedLists {
  std::vector<std::int64_t> splits;  ///< [lists + 1], rising from 0 to the number of ids
  std::vector<std::int32_t> ids;     ///< rows of the id map that Lists::ids names
};

/// Checks the parts of a run: each table has the dim that the job gives it and the rows of its id
/// map; id maps, lists and numbers are those that the job's kind of model saves; vectors have the
/// shape of their table.
void check_saved_parts(const checkpoint::Manifest& manifest, const SavedParts& saved);

SavedLists saved_lists(const SavedParts& saved, const PartsById::Lists& what);
std::vector<float> saved_numbers(const SavedParts& saved, const PartsById::Numbers& what);

/// A table as its checkpoint has it, which parts about its rows must fit.
struct SavedTableShape {
  std::string_view table;
  std::int64_t rows;
  std::int64_t dim;
  const std::filesystem::path& directory;  ///< of the step
};

/// The id map of this name, whose rows are those of the table.
const IdMap& saved_keys(const SavedTableShape& table, const std::string& ids,
                        const std::map<std::string, IdMap>& id_maps);

/// The blob "names.IDS": a name for each key of the map, "" for a key without one. Nothing if there
/// is no such blob.
std::vector<std::string> saved_names(const SavedTableShape& table, const std::string& ids,
                                     const IdMap& keys, const CallerState& state);

/// The tensor "vectors.TABLE", F32 of the shape of the table, or null if there is none.
const DenseTensor* saved_vectors(const SavedTableShape& table, const CallerState& state);

}  // namespace embertable::jobs
