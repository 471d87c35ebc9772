#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "apps/jobs/data/data_set.h"
#include "apps/jobs/data/records_spec.h"
#include "apps/jobs/keys/field_keys.h"

namespace embertable::jobs {

/// Reads the records of data files into a data set: ids, labels and parts.
class RecordReader {
 public:
  /// Reads into `data`, which has its columns and cells, and no samples. Both are borrowed. Leaves
  /// out at most `skip_bad` broken records.
  RecordReader(const RecordsSpec& records, std::int64_t skip_bad, DataSet& data);

  /// Appends the records of some files; `tests` puts all of them into the test part. Throws what
  /// CsvReader throws, ValueError for 2^31 samples.
  void read(const std::vector<std::string>& paths, bool tests);

  /// Deals the records to parts if their times do, and assigns rows to keys. Requires: the last
  /// file was read. Throws ValueError for a text of data.positive or data.negative that the label's
  /// column never has, and if they make all labels equal.
  void finish();

 private:
  void make_keys(const CsvReader& reader);
  void push(const CsvReader& reader, bool tests);
  float label(const CsvReader& reader);
  void check_label(const CsvReader& reader, const std::string& path) const;
  void check_label_texts() const;
  void count_empty(const CsvReader& reader);
  Part part(const CsvReader& reader, bool tests) const;
  bool trains(Part part) const noexcept;
  std::uint64_t split_key(const CsvReader& reader) const;
  void read_numbers(const CsvReader& reader);
  void deal_by_time();
  void number();
  void give_rows(const FieldKeys& keys, IdColumn& column);

  const RecordsSpec& records_;
  std::int64_t skip_bad_;
  DataSet& data_;
  std::size_t ids_ = 0;  ///< number of records_.ids that the data file has; they come first

  /// Label, columns of ids, of data.where, of data.numbers, of the time, columns that split.
  std::vector<std::string> columns_;
  std::size_t where_ = 0;                      ///< place of the first column of data.where
  std::size_t numbers_ = 0;                    ///< place of the first column of data.numbers
  std::size_t time_ = 0;                       ///< place of the column of times
  std::vector<std::uint8_t> seen_;             ///< [positive, negative]: which label texts occur
  std::vector<std::string> others_;            ///< the first other texts of the label's column
  bool has_zeros_ = false, has_ones_ = false;  ///< labels of texts
  std::vector<FieldKeys> keys_;                ///< keys of those ids
  std::vector<float> labels_;                  ///< labels of the queued records
  std::vector<double> queued_numbers_;         ///< [queued records, data.numbers]
  std::vector<std::uint8_t> trains_;           ///< flags of the queued records
  TimeFields time_fields_;
  std::vector<std::int64_t> times_;  ///< by record, if they deal it to its part
};

/// Returns the number in a field; NaN for an empty one, and for the text `missing`. Throws
/// BrokenRecord for another text.
double number_in(const CsvReader& reader, std::size_t field, std::string_view missing);

/// Writes the numbers of samples from `first` on, [samples, DataSet::numbers], to their cells.
void put_numbers(std::span<const double> numbers, std::int64_t first, DataSet& data);

/// Turns lists of key numbers into lists of rows; keys without a row are left out.
void finish_lists(const FieldKeys& keys, IdLists& lists);

}  // namespace embertable::jobs
