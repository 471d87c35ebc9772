#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "apps/jobs/spec/saved_parts.h"
#include "apps/jobs/text/broken_record.h"
#include "embertable/executor.h"

namespace embertable::jobs {

/// A text with rows to be scored, in the format of a job's own data.
struct NewRows {
  std::string path;  ///< plain or compressed, pipes too
  SkipBad skip_bad;  ///< broken lines to leave out and count before failing

  /// If false, records without a header lack the label's column, so that the numbers of the columns
  /// after it are one less.
  bool has_label = true;

  /// Items that a ranking model gives each user, 1 to kMostItems; unset: kItems.
  std::optional<std::int64_t> items;
  static constexpr std::int64_t kItems = 10;
  static constexpr std::int64_t kMostItems = 10'000;

  /// Columns given beside the scores of records: if `copy_ids`, those of ids with one key a record,
  /// then these, which are named as in the rows' header or by number from 1. Unset: no ids.
  std::optional<bool> copy_ids = std::nullopt;
  std::vector<std::string> copy = {};

  /// What errors call `has_label`, `copy` and `copy_ids` where they must not be given so.
  struct Names {
    std::string_view no_label = "has_label = false", copy = "copy", no_ids = "copy_ids = false";
  };
  Names names = {};

  /// Returns the number of items that a ranking model gives each user. Throws ValueError if it is
  /// out of range, and for what has no effect on lines of items: columns to copy, `copy_ids` that
  /// is false, rows without a label.
  std::int64_t ranked_items() const;
};

/// One value of a line of scores.
using ScoreCell = std::variant<std::int64_t, float, std::string_view>;

struct ScoreColumn {
  std::string name;
  bool score = false;  ///< its cells are floats; those of others are whole numbers or texts
};

/// Receives scores line by line, in the order of the rows.
class ScoreSink {
 public:
  virtual ~ScoreSink() = default;
  virtual void begin(const std::vector<ScoreColumn>& columns) = 0;

  /// Receives a cell for each column. Borrowed.
  virtual void line(std::span<const ScoreCell> cells) = 0;
};

/// Counts of the rows so far.
struct RowCounts {
  std::int64_t rows = 0;         ///< scored rows
  std::int64_t left_out = 0;     ///< broken rows
  std::int64_t with_unseen = 0;  ///< rows with a key that has no row of its own

  /// Number of such keys, by the name of their ids.
  std::map<std::string, std::int64_t> unseen;

  /// Columns that the rows lack and the job reads: its rules leave out no row, and without times
  /// the order of the rows counts.
  std::vector<std::string> absent;
};

/// Scores new rows with what a run saved, as the run would measure them. Memory does not grow with
/// the rows unless stated otherwise. Called from one thread.
class Predictor {
 public:
  virtual ~Predictor() = default;

  /// Returns the columns of a line of scores.
  virtual std::vector<ScoreColumn> columns() const = 0;

  /// Reads and scores the next rows; returns false at the end. Gives the same scores whatever the
  /// executor. Throws as CsvReader or TokenReader, DataLoss for a damaged table.
  virtual bool next(Executor& executor, ScoreSink& sink) = 0;

  virtual const RowCounts& counts() const = 0;
};

}  // namespace embertable::jobs
