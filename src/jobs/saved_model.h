#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "embertable/id_map.h"

namespace embertable::jobs {

/// One table of a saved model, with the keys and the names of its rows; of items with sides their
/// vectors, see `ModelSaver`.
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
