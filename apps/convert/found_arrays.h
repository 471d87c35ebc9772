#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "apps/convert/table_format.h"
#include "checkpoint/data_file.h"
#include "checkpoint/manifest.h"

namespace embertable::jobs {

/// An array of floating-point numbers that another program wrote.
struct FoundArray {
  std::string name;    ///< "user", "user/accumulators"
  std::string place;   ///< prefix of the name: arrays of one place belong together
  std::string source;  ///< its key or file
  std::vector<std::int64_t> shape;
  checkpoint::FillRows read;
  std::filesystem::path keys = {};  ///< file with the keys of its rows, if there is one
};

/// Find the arrays of a tensor bundle and of .npy files. `others` receives the keys of tensors that
/// can be neither table nor slot, except those that every checkpoint of TensorFlow has. Throw as
/// ImportOptions::from says.
std::vector<FoundArray> find_in_bundle(const std::filesystem::path& path,
                                       std::vector<std::string>& others);
std::vector<FoundArray> find_npy(const std::filesystem::path& path);

/// A table with its slots, the rows first.
struct FoundTable {
  checkpoint::SavedTable saved;
  std::vector<FoundArray> arrays;
};

/// Finds out which arrays are tables and slots; `tables` and `slots` as in ImportOptions. Removes
/// what it uses from `arrays`. Throws as import_tables; `from` is where an error says they are.
std::vector<FoundTable> group_tables(std::vector<FoundArray>& arrays,
                                     const std::vector<std::string>& tables,
                                     const std::vector<std::string>& slots,
                                     const std::filesystem::path& from);

}  // namespace embertable::jobs
