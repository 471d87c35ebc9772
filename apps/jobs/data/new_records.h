#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "apps/jobs/data/data_set.h"
#include "apps/jobs/data/records_spec.h"
#include "apps/jobs/keys/field_keys.h"
#include "apps/jobs/spec/predictor.h"
#include "apps/jobs/text/csv_reader.h"
#include "embertable/id_map.h"

namespace embertable::jobs {

/// Reads records of which a run has given the keys their rows: the columns of ids alone, so that
/// label and columns that split may be absent.
class NewRecords {
 public:
  /// `ids`: the rows of the keys, by the name of the ids. The spec is borrowed. Throws what
  /// CsvReader throws; ValueError for a column of another name than those that the keys are of.
  NewRecords(const RecordsSpec& records, const std::map<std::string, IdMap>& ids,
             const NewRows& rows);

  /// Puts the next records, `most` or as many as there are, in the place of the samples of `data`
  /// and of its lists by sample. A key without a row is -1, or not in its list. Returns how many.
  std::int64_t read(std::int64_t most, DataSet& data);

  /// For each record that was read last: where it begins in the file, and how many of its keys have
  /// no row of their own.
  std::span<const std::int64_t> lines() const noexcept { return lines_; }
  std::span<const std::int64_t> unseen() const noexcept { return unseen_; }

  const RowCounts& counts() const noexcept { return counts_; }

 private:
  static std::vector<std::string> columns_of(const RecordsSpec& records, const NewRows& rows);
  void make_keys(const std::map<std::string, IdMap>& ids);
  void push();
  void number(DataSet& data);
  void count_unseen(const DataSet& data);
  void give_rows(DataSet& data) const;

  const RecordsSpec& records_;
  std::vector<FieldKeys> keys_;  ///< keys of the ids in the data file, which come first
  CsvReader reader_;
  std::vector<std::uint8_t> queued_;
  std::vector<std::int64_t> lines_, unseen_;
  RowCounts counts_;
};

}  // namespace embertable::jobs
