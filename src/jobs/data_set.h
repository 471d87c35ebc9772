#pragma once

#include <bit>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "jobs/job.h"
#include "jobs/split.h"
#include "jobs/vocabulary.h"

namespace embertable::jobs {

/// Lists of ids, by sample or by the id of another column.
struct IdLists {
  std::vector<std::int64_t> splits = {0};  ///< [lists + 1]
  std::vector<std::int32_t> ids;
  std::int64_t longest = 0;
  std::int64_t without = 0;                ///< keys of a joined file's owner that have no record there
};

/// The ids of one column: numbered keys, and which of them each sample has.
struct IdColumn {
  std::string name;
  Vocabulary keys;
  std::int32_t cell = -1;   ///< place in a sample's cells, or -1: lists
  std::int32_t owner = -1;  ///< of lists: the cell whose id chooses the list, or -1: the sample does
  IdLists lists;
};

/// What a job trains on, in memory. Samples are rows of cells, so that a shuffled batch touches one place per sample.
struct DataSet {
  std::vector<IdColumn> columns;     ///< in the order of Job::ids
  std::int64_t stride = 1;           ///< cells per sample: ids, then the bits of the label
  std::vector<std::int32_t> cells;   ///< [samples, stride]
  std::vector<Part> part;            ///< [samples]

  std::int64_t samples() const noexcept { return static_cast<std::int64_t>(part.size()); }
  std::int32_t id(std::int64_t sample, std::int32_t cell) const noexcept {
    return cells[static_cast<std::size_t>(sample * stride + cell)];
  }
  float label(std::int64_t sample) const noexcept {
    return std::bit_cast<float>(cells[static_cast<std::size_t>(sample * stride + stride - 1)]);
  }
  const IdColumn& column(const std::string& name) const;

  /// The samples of the wanted parts, in the order of the file.
  std::vector<std::int32_t> select(const std::function<bool(Part)>& wanted) const;
};

/// Reads the files of a job from the folder `root`. Throws IoError, DataLoss or ValueError naming file, line and column, as
/// CsvReader; ValueError for a label outside the job's range, a key that a side table has twice, or 2^31 samples.
DataSet read_data(const Job& job, const std::string& root);

}  // namespace embertable::jobs
