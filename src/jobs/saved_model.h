#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "embertable/embedding.h"
#include "embertable/id_map.h"
#include "jobs/data_set.h"
#include "jobs/job.h"

namespace embertable::jobs {

/// Saves the tables as a step of the run directory `out`, and in the same commit what a reader
/// needs with them: the id maps by the name of their ids, the blob "job.toml", for each [names.IDS]
/// the blob "names.IDS" (a JSON list by row, null without a name), the tensor "vectors.TABLE" where
/// items have sides joined to them (an item's row with its pooled sides: what the model holds
/// against a user's row), and the JSON state {"job", "model", "mean", "ids": {table: ids}}. Gives
/// the step's directory. Throws as `Embedding::save` and `CsvReader`.
std::filesystem::path save_model(const Embedding& engine, const Job& job, const DataSet& data,
                                 double mean, const std::string& data_root, const std::string& out);

/// One table of a saved model, with the keys and the names of its rows; of items with sides their
/// vectors, see above.
class SavedTableRows {
 public:
  /// `path`: a run's directory or a step's. Throws IoError, DataLoss, or KeyError naming the
  /// nearest table.
  SavedTableRows(const std::filesystem::path& path, const std::string& table);

  const std::string& name() const noexcept { return name_; }
  std::int64_t rows() const noexcept { return rows_; }
  std::int64_t dim() const noexcept { return dim_; }
  const float* row(std::int64_t row) const noexcept { return values_.data() + row * dim_; }

  /// Throws KeyError for an unknown key, ValueError for a text that is no integer where keys are
  /// integers.
  std::int64_t row_of_key(const std::string& key) const;

  /// The row whose name is this text, or else the only one whose name contains it; upper and lower
  /// case (of ASCII) are one. Throws KeyError if there is none, ValueError listing the first of
  /// several.
  std::int64_t row_of_name(const std::string& text) const;

  std::string key(std::int64_t row) const;

  /// "" where the job gives none.
  const std::string& display_name(std::int64_t row) const noexcept;

 private:
  std::string name_;
  std::int64_t rows_ = 0;
  std::int64_t dim_ = 0;
  std::vector<float> values_;  ///< [rows, dim]
  IdMap ids_;
  std::vector<std::string> names_;
};

}  // namespace embertable::jobs
