#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "apps/jobs/data/data_set.h"
#include "apps/jobs/data/records_spec.h"
#include "apps/jobs/keys/field_keys.h"
#include "apps/jobs/spec/predictor.h"
#include "apps/jobs/text/csv_reader.h"
#include "embertable/id_map.h"

namespace embertable::jobs {

/// Returns a key as a cell: a whole number if keys are integers and it is none of their exceptions,
/// such as an empty one; else the text, which is borrowed.
ScoreCell key_cell(std::string_view key, bool integers);

/// Returns whether the keys of one column are whole numbers.
bool has_integer_keys(const IdsSpec& ids) noexcept;

/// Reads records whose keys have got their rows in a run. Reads only the columns of ids and
/// numbers, and those that are asked for, so that the label and columns that split may be absent.
class NewRecords {
 public:
  /// `ids` has the rows of the keys, by the name of the ids. The spec is borrowed. Throws what
  /// CsvReader throws; ValueError for a column whose name differs from that of the saved keys.
  NewRecords(const RecordsSpec& records, const std::map<std::string, IdMap>& ids,
             const NewRows& rows);

  /// Replaces the samples of `data` and its lists by sample by the next records, at most `most`. A
  /// key without a row becomes -1, or is left out of its list. Returns the number of records.
  std::int64_t read(std::int64_t most, DataSet& data);

  /// Where each record that was read last begins in the file, and how many of its keys have no row
  /// of their own.
  std::span<const std::int64_t> lines() const noexcept { return lines_; }
  std::span<const std::int64_t> unseen() const noexcept { return unseen_; }

  /// Names of the columns that are copied, and what a record that was read last has in one: a whole
  /// number where keys are such. Valid until the next ones are read.
  const std::vector<std::string>& copied_columns() const noexcept { return copied_columns_; }
  ScoreCell copied(std::int64_t record, std::size_t column) const;

  const RowCounts& counts() const noexcept { return counts_; }
  const LeftOut& left_out() const noexcept { return reader_.left_out(); }

 private:
  static std::vector<std::string> columns_of(const RecordsSpec& records, const NewRows& rows);
  void find_copied(const NewRows& rows);
  void make_keys(const std::map<std::string, IdMap>& ids);
  void push();
  void number(DataSet& data);
  void count_unseen(const DataSet& data);
  void give_rows(DataSet& data) const;

  const RecordsSpec& records_;
  std::vector<FieldKeys> keys_;  ///< keys of the ids in the data file, which come first
  CsvReader reader_;
  std::vector<std::string> copied_columns_;
  std::vector<std::size_t> copied_places_;  ///< by copied column: its place in the reader's columns
  std::vector<bool> copied_integers_;       ///< by copied column: its keys are integers
  std::vector<std::string> copied_;         ///< [records, copied columns]; may be longer
  std::size_t number_place_ = 0;            ///< place of the first number
  std::vector<double> numbers_;             ///< [queued records, numbers]
  std::vector<std::uint8_t> queued_;
  std::vector<std::int64_t> lines_, unseen_;
  RowCounts counts_;
};

}  // namespace embertable::jobs
