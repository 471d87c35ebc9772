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
#include "embertable/executor.h"

namespace embertable::jobs {

/// A text with rows to be scored, in the format of a job's own data.
struct NewRows {
  std::string path;           ///< plain or compressed, pipes too
  std::int64_t skip_bad = 0;  ///< maximum broken lines to leave out and count before failing

  /// False: records that have no header lack the column of the label, so that the numbers of those
  /// behind it are one less.
  bool has_label = true;

  /// Items that a ranking model gives each user, 1 to kMostItems; unset: kItems.
  std::optional<std::int64_t> items;
  static constexpr std::int64_t kItems = 10;
  static constexpr std::int64_t kMostItems = 10'000;
};

/// One value of a line of scores.
using ScoreCell = std::variant<std::int64_t, float, std::string_view>;

/// Takes scores line by line, in the order of the rows.
class ScoreSink {
 public:
  virtual ~ScoreSink() = default;
  virtual void begin(const std::vector<std::string>& columns) = 0;

  /// A cell for each column. Borrowed.
  virtual void line(std::span<const ScoreCell> cells) = 0;
};

/// Rows so far.
struct RowCounts {
  std::int64_t rows = 0;         ///< scored
  std::int64_t left_out = 0;     ///< broken
  std::int64_t with_unseen = 0;  ///< rows with a key that has no row of its own

  /// Such keys, by the name of their ids.
  std::map<std::string, std::int64_t> unseen;
};

/// Scores new rows by what a run saved, as it would measure them. Memory does not grow with the
/// rows, but where it says so. Called from one thread.
class Predictor {
 public:
  virtual ~Predictor() = default;

  /// Columns of a line of scores.
  virtual std::vector<std::string> columns() const = 0;

  /// Reads and scores the next rows; false at the end. The same scores whatever the executor.
  /// Throws as CsvReader or TokenReader, DataLoss for a damaged table.
  virtual bool next(Executor& executor, ScoreSink& sink) = 0;

  virtual const RowCounts& counts() const = 0;
};

}  // namespace embertable::jobs
