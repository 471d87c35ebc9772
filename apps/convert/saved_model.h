#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "apps/convert/row_keys.h"

namespace embertable::checkpoint {
class Reader;
struct SavedTable;
}  // namespace embertable::checkpoint

namespace embertable::jobs {

/// Returns the table of this name. Throws KeyError naming the nearest one.
const checkpoint::SavedTable& find_table(const checkpoint::Reader& reader, const std::string& name);

/// One table of a saved model, with the keys and the names of its rows. For items with sides it has
/// their vectors instead of rows: see `ModelSaver`.
class SavedTableRows : public RowKeys {
 public:
  /// `path`: a run's directory or a step's. Throws IoError, DataLoss, or KeyError naming the
  /// nearest table.
  SavedTableRows(const std::filesystem::path& path, const std::string& table);
  SavedTableRows(const checkpoint::Reader& reader, const std::string& table);

  const std::string& name() const noexcept { return name_; }
  std::int64_t rows() const noexcept { return rows_; }
  std::int64_t dim() const noexcept { return dim_; }
  const float* row(std::int64_t row) const noexcept { return values_.data() + row * dim_; }

  /// Throws IndexError unless the table has this row.
  void check_row(std::int64_t row) const;

 private:
  std::string name_;
  std::int64_t rows_ = 0;
  std::int64_t dim_ = 0;
  std::vector<float> values_;  ///< [rows, dim]
};

}  // namespace embertable::jobs
