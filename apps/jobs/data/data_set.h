#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "apps/jobs/data/records_spec.h"
#include "apps/jobs/data/samples.h"
#include "apps/jobs/keys/vocabulary.h"
#include "apps/jobs/spec/model.h"
#include "apps/jobs/spec/split.h"
#include "apps/jobs/text/broken_record.h"

namespace embertable::jobs {

/// Lists of ids, selected by the value of a cell: the id of another column, or the sample's own
/// number.
struct IdLists {
  std::vector<std::int64_t> splits = {0};  ///< [lists + 1]
  std::vector<std::int32_t> ids;
  std::int64_t longest = 0;
  std::int64_t without = 0;  ///< keys of the owner column that have no record
};

/// The ids of one column: the numbered keys, and which of them each sample has.
struct IdColumn {
  std::string name;
  Vocabulary keys;
  std::int32_t cell = -1;   ///< where a sample has its first id, or -1: lists
  std::int32_t width = 1;   ///< ids per sample
  std::int32_t owner = -1;  ///< lists only: the cell that selects the list
  IdLists lists;
  std::int64_t empty = 0;  ///< records whose one key is an empty field
};

/// The samples that a job trains on and measures, in memory.
struct DataSet {
  std::vector<IdColumn> columns;  ///< in the order of RecordsSpec::ids
  std::int64_t numbers = 0;       ///< in each sample: those of DataSpec::numbers
  Samples samples;                ///< in the order of the file
  std::vector<Part> part;         ///< by sample
  LeftOut left_out;               ///< broken records

  const IdColumn& column(const std::string& name) const { return named(columns, name); }

  /// Returns the samples of some parts, in the order of the file.
  Samples select(const std::vector<Part>& parts) const;

  /// Returns the cell of a sample where number i begins; NaN is one that it lacks.
  std::int64_t number_cell(std::int64_t i = 0) const noexcept {
    return samples.stride - 1 - (numbers - i) * kNumberCells;
  }

  static constexpr std::int64_t kNumberCells = 2;  ///< a number has 64 bits
};

/// Makes empty columns and the layout of a sample's cells: ids, its place if there are lists by
/// sample, its numbers, its label.
DataSet make_columns(const RecordsSpec& records);

/// Reads the files of a job, or what an earlier run has left in their cache. Leaves out at most the
/// number of broken records in the options, over all files together. Throws IoError, DataLoss or
/// ValueError naming file, line and column, like CsvReader; ValueError for a label outside the
/// job's range, a key that a side table has twice, or 2^31 samples.
DataSet read_data(const RecordsSpec& records, const DataOptions& options);

/// Returns what an earlier run has left in the cache, if [data], [ids] and [split] are the same and
/// the files have the same path, size and time of change.
std::optional<DataSet> read_cached(const RecordsSpec& records, const DataOptions& options);

/// Returns one hash of the labels with their parts ("samples"), one of the numbers, rounded to
/// binary32, if there are some ("numbers"), and one of the keys, samples and lists of every column
/// ("ids NAME"), 32 hexadecimal digits: equal for equal contents, wherever they were read from and
/// in whatever order the job names its columns.
std::map<std::string, std::string> data_digests(const DataSet& data);

}  // namespace embertable::jobs
