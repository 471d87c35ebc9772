#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "apps/jobs/keys/field_keys.h"
#include "apps/jobs/spec/file_spec.h"
#include "apps/jobs/spec/named.h"
#include "apps/jobs/spec/toml_section.h"
#include "apps/jobs/text/field_rule.h"

namespace embertable::jobs {

/// Section [data], with one sample per record.
struct DataSpec {
  FileSpec file;
  std::string label;  ///< column that is predicted
  double lowest = 0;  ///< range of the labels; predictions are clipped to it
  double highest = 0;
  bool binary = false;  ///< labels are 0 or 1, with nothing between

  /// Texts that mean label 1, and label 0. If both are empty, labels are numbers; if one is empty,
  /// it stands for all other texts.
  std::vector<std::string> positive, negative;
  bool has_texts() const noexcept { return !positive.empty() || !negative.empty(); }

  std::vector<FieldRule> where;  ///< rules that a record must keep to be a sample

  /// Columns whose numbers the model takes as they are, standardised; `written_numbers` may have
  /// ranges. An empty field, or one with the text `missing`, counts as the mean.
  std::vector<std::string> numbers, written_numbers;
  std::string missing;
};

/// Reads the section data.where.
std::vector<FieldRule> read_where(TomlSection section);

/// Section [ids.NAME]: the keys of a column, or of several, numbered.
struct IdsSpec {
  std::string name;
  std::vector<std::string> columns;  ///< one, unless keys are by column
  std::vector<std::string> buckets;  ///< columns whose numbers become tokens

  /// Columns whose numbers become tokens by limits of their own.
  struct Limits {
    std::string column;
    std::vector<double> values;  ///< rising
  };
  std::vector<Limits> limits;

  /// Returns how the field of a column becomes a key.
  KeyField field(const std::string& column, std::size_t place) const;

  /// Both as the job file writes them, with ranges (column_range.h).
  std::vector<std::string> written, written_buckets;
  KeyRules rules;

  // The following fields are for a side table, which has one record for each key of other ids.
  FileSpec file;    ///< no paths: the columns are in the data file
  std::string key;  ///< column of `file`
  std::string of;   ///< name of the other ids
  bool joined() const noexcept { return !file.paths.empty(); }
  bool one_a_sample() const noexcept {
    return !joined() && rules.separator.empty() && columns.size() == 1;
  }
};

/// Section [split].
struct SplitSpec {
  /// One or two names of ids or columns of the data file; empty: the number of the record decides.
  std::vector<std::string> by;
  std::vector<std::string> columns;  ///< columns that `by` names

  std::uint64_t salt = 0;
  bool train_on_validation = false;  ///< the validation part trains too, and is not measured

  /// Column of times that deals the records instead: of n records the latest floor(n * test) are
  /// the test part, and those before them, floor(n * validation), the validation part. Of equal
  /// times the earlier in the file counts as earlier. "": none.
  std::string time;
  double test = 0.1, validation = 0.1;

  /// Files of the test part, in the format of the data file. If set, this many of the ten buckets
  /// of the data file are the validation part.
  std::vector<std::string> test_paths;
  int validation_buckets = 0;
};

/// Sections of a job file about records of a text file: [data], [ids] and [split].
struct RecordsSpec {
  DataSpec data;
  std::vector<IdsSpec> ids;  ///< joined ones after the ids they belong to
  SplitSpec split;
};

/// Throws ValueError as TomlSection.
RecordsSpec read_records_spec(TomlSection& root);

/// Throws ValueError if the header of a file gives a column a name that the job writes for a range
/// of columns, "2-3".
void check_ranges(const RecordsSpec& records, std::span<const std::string> header,
                  const std::string& path);

}  // namespace embertable::jobs
