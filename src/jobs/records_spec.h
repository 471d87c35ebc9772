#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "jobs/file_spec.h"
#include "jobs/named.h"
#include "jobs/toml_section.h"
#include "jobs/vocabulary.h"

namespace embertable::jobs {

enum class KeyOrder : std::uint8_t { kFirst, kSorted };

/// [data]: one sample a record.
struct DataSpec {
  FileSpec file;
  std::string label;  ///< column that is predicted
  double lowest = 0;  ///< range of the labels; predictions are clipped to it
  double highest = 0;
};

/// [ids.NAME]: the keys of a column, numbered.
struct IdsSpec {
  std::string name;
  std::string column;
  KeyKind keys = KeyKind::kInteger;
  KeyOrder order = KeyOrder::kFirst;
  std::string separator;  ///< between the keys of a list; "": one key per field

  // From a side table, which has one record for a key of other ids:
  FileSpec file;    ///< path "": the column is in the data file
  std::string key;  ///< column of `file`
  std::string of;   ///< the other ids
  bool joined() const noexcept { return !file.path.empty(); }
  bool one_a_sample() const noexcept { return !joined() && separator.empty(); }
};

/// [split]
struct SplitSpec {
  /// One or two ids with integer keys; empty: the number of the record decides.
  std::vector<std::string> by;

  std::uint64_t salt = 0;
  bool train_on_validation = false;  ///< the validation part trains too, and is not measured
};

/// What a job file says of records of a text file: [data], [ids] and [split].
struct RecordsSpec {
  DataSpec data;
  std::vector<IdsSpec> ids;  ///< joined ones after the ids they belong to
  SplitSpec split;
};

/// Throws ValueError as TomlSection.
RecordsSpec read_records_spec(TomlSection& root);

}  // namespace embertable::jobs
