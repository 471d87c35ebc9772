#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "embertable/checkpoint.h"
#include "embertable/id_map.h"

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
};

/// Lists back to back.
struct SavedLists {
  std::vector<std::int64_t> splits;  ///< [lists + 1], rising from 0 to the number of ids
  std::vector<std::int32_t> ids;     ///< rows of the id map that Lists::ids names
};

SavedLists saved_lists(const SavedParts& saved, const PartsById::Lists& what);
std::vector<float> saved_numbers(const SavedParts& saved, const PartsById::Numbers& what);

}  // namespace embertable::jobs
