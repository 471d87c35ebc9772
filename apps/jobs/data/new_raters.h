#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "apps/jobs/data/records_spec.h"
#include "apps/jobs/spec/predictor.h"
#include "apps/jobs/text/broken_record.h"
#include "embertable/id_map.h"

namespace embertable::jobs {

/// A user of new records, with the items that the records give it.
struct NewRater {
  std::string key;  ///< its text in the records; an integer is written without zeros before it
  std::int32_t row = -1;          ///< row that a run has given the user; -1: none
  bool shares_row = false;        ///< the row is that of rare keys, or hashed
  std::vector<std::int32_t> has;  ///< rows of its items, in the order of the records
};

/// The users of new records, in the order in which they are first seen.
struct NewRaters {
  std::vector<NewRater> users;
  std::int64_t unseen_users = 0;  ///< users without a row of their own
  std::int64_t unseen_items = 0;  ///< items of records without a row of their own
  LeftOut left_out;               ///< broken records
};

/// Reads the users of records in the format of a job's data, which may lack the column of the items
/// or have empty fields there. Spec and maps are borrowed for the call. Throws what CsvReader
/// throws, and what `check_share` throws.
NewRaters read_raters(const RecordsSpec& records, const IdsSpec& users, const IdsSpec& items,
                      const std::map<std::string, IdMap>& ids, const NewRows& rows);

/// Returns the number of rows that are one item's alone: those before the row of rare keys.
std::int64_t own_rows(const IdsSpec& ids, const std::map<std::string, IdMap>& maps);

}  // namespace embertable::jobs
