#include "apps/jobs/data/new_raters.h"

#include <span>
#include <string_view>
#include <utility>
#include <variant>

#include "apps/jobs/data/new_records.h"
#include "apps/jobs/keys/field_keys.h"
#include "apps/jobs/keys/vocabulary.h"
#include "apps/jobs/text/csv_reader.h"

namespace embertable::jobs {
namespace {

/// The keys of one field of the rows, with the rows that a run gave them.
FieldKeys saved_field_keys(const IdsSpec& ids, const std::map<std::string, IdMap>& maps,
                           std::size_t place) {
  return {ids.rules, {ids.field(ids.columns[0], place)}, {ids.columns[0]}, maps.at(ids.name)};
}

/// Returns the text of a user's key: one for all spellings of an integer.
std::string key_text(const IdsSpec& users, std::string_view field) {
  const ScoreCell cell = key_cell(field, has_integer_keys(users));
  const auto* const number = std::get_if<std::int64_t>(&cell);
  return number != nullptr ? std::to_string(*number) : std::string(field);
}

/// Returns the number that the keys of one field give the reader's record.
std::int32_t number_of_field(FieldKeys& keys, const CsvReader& reader) {
  constexpr std::uint8_t kOne[] = {0};
  std::int32_t number = -1;
  keys.push(reader);
  keys.number(kOne, &number, 1);
  return number;
}

}  // namespace

NewRaters read_raters(const RecordsSpec& records, const IdsSpec& users, const IdsSpec& items,
                      const std::map<std::string, IdMap>& ids, const NewRows& rows) {
  NewRaters found;
  const std::vector<std::string> columns = {users.columns[0], items.columns[0]};
  CsvReader reader(std::span(&rows.path, 1), records.data.file.format, columns,
                   rows.skip_bad.most(), 1);
  FieldKeys user_keys = saved_field_keys(users, ids, 0),
            item_keys = saved_field_keys(items, ids, 1);
  const std::int64_t own = own_rows(users, ids);
  Vocabulary seen(KeyKind::kString);
  while (reader.next()) {
    try {
      const std::int32_t number = number_of_field(user_keys, reader);
      const bool has_item = reader.has(1) && !reader.text(1).empty();
      const std::int32_t item = has_item ? number_of_field(item_keys, reader) : -1;
      const std::string key = key_text(users, reader.text(0));
      const std::int32_t user = seen.add(key);
      if (user == std::ssize(found.users)) {
        const std::int32_t row = user_keys.row(number, 0);
        found.users.push_back({key, row, row >= own, {}});
        found.unseen_users += number < 0 ? 1 : 0;
      }
      if (item >= 0) found.users[user].has.push_back(item_keys.row(item, 0));
      if (has_item && item < 0) ++found.unseen_items;
    } catch (const BrokenRecord&) {
      reader.leave_out();
    }
  }
  check_share(rows.skip_bad, reader.left_out());
  found.left_out = reader.left_out();
  return found;
}

std::int64_t own_rows(const IdsSpec& ids, const std::map<std::string, IdMap>& maps) {
  const std::int64_t keys = maps.at(ids.name).num_keys();
  // The row of a column's rare keys is that of the key "COLUMN", behind the others.
  return keys - (ids.rules.by_column && ids.rules.min_count > 0 ? 1 : 0);
}

}  // namespace embertable::jobs
