#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "apps/jobs/data/histories.h"
#include "apps/jobs/data/ranking.h"
#include "apps/jobs/keys/vocabulary.h"
#include "apps/jobs/text/csv_reader.h"

namespace embertable::jobs {

/// A file with the attributes of items: lines `item attribute attribute ...`, or a column of
/// records.
struct ItemListsSpec {
  KeysSpec keys;
  bool lists = false;
  std::string file;  ///< relative to the data folder

  // The following fields are for files of records.
  CsvFormat format;
  std::string key;        ///< column with the item
  std::string column;     ///< column with its attributes
  std::string separator;  ///< separator of attributes
};

/// The attributes of each item, each once, in the order of the file. An item without a line or
/// record has none.
struct ItemLists {
  Vocabulary keys;
  std::vector<std::int64_t> splits = {0};  ///< [items + 1]
  std::vector<std::int32_t> ids;
  std::int64_t without = 0;  ///< items without a line or record
  LeftOut left_out;          ///< broken lines

  ListsView view() const noexcept { return {splits, ids}; }
};

/// Reads the attributes of `items`, or what an earlier run has left in their cache; other items of
/// the file are skipped. Leaves out at most the number of broken lines in the options; a repeated
/// item counts as a broken line. Throws IoError, DataLoss or ValueError naming file, line and
/// column.
ItemLists read_item_lists(const ItemListsSpec& spec, const Vocabulary& items,
                          const DataOptions& options);

/// Returns a hash of the attributes' keys and the lists.
std::string data_digest(const ItemLists& lists);

}  // namespace embertable::jobs
