#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "apps/convert/saved_table_parts.h"
#include "embertable/checkpoint.h"
#include "embertable/id_map.h"

namespace embertable::jobs {

/// The keys and the names of the rows of one saved table. A job says which id map has its keys; in
/// other checkpoints it is the one that has the table's name and number of rows.
class RowKeys {
 public:
  /// Throws DataLoss as `saved_keys` and `saved_names` unless every key and every name of a job has
  /// a row of the table.
  RowKeys(const SavedTableShape& table, const CallerState& caller,
          const std::map<std::string, IdMap>& id_maps);

  /// True if rows have keys.
  bool any() const noexcept { return ids_.has_value(); }

  /// Returns the row of a key; where no key has a row of its own, that which its hash gives. Throws
  /// KeyError for an unknown key, ValueError for a text that is not an integer if keys are
  /// integers.
  std::int64_t row_of_key(const std::string& key) const;

  /// Returns the only row whose name is this text, or else the only one whose name contains it.
  /// Upper and lower case (of ASCII) are equal. Throws KeyError if there is none, ValueError for an
  /// empty text, and one that lists the first of several.
  std::int64_t row_of_name(const std::string& text) const;

  /// True for a row that has a key of its own, which may be "".
  bool has_key(std::int64_t row) const noexcept { return ids_ && row < ids_->num_keys(); }

  /// Returns "" for a row that has no key of its own.
  std::string key(std::int64_t row) const;

  bool has_names() const noexcept { return !names_.empty(); }

  /// Returns "" if the job gives no names.
  const std::string& display_name(std::int64_t row) const noexcept;

 private:
  template <typename Key>
  std::int64_t known_or_hashed(const std::string& text, Key key) const;

  std::string table_;
  std::optional<IdMap> ids_;
  std::vector<std::string> names_;
};

}  // namespace embertable::jobs
