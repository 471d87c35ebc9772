#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "apps/convert/table_format.h"

namespace embertable::jobs {

/// What names a row in a word2vec file.
enum class RowLabel : std::uint8_t {
  kKey,   ///< its key, if a job has given it one, else its number
  kName,  ///< its name, blanks replaced by '_'; a row without one as kKey
  kRow,   ///< its number
};

struct ExportOptions {
  TableFormat format = TableFormat::kTensorFlow;
  std::filesystem::path
      from;  ///< a run's directory, of which the latest step is taken, or a step's

  /// A directory; for kWord2vec with one table, the file.
  std::filesystem::path out;

  std::vector<std::string> tables;  ///< names; empty: all
  bool slots = false;               ///< also writes optimizer slots; not for kWord2vec and kInt8

  // The following fields are for kTensorFlow.

  /// The attributes from the root of the checkpoint to the object that has the tables, with '/'
  /// between them. Empty: the root has them.
  std::string object = "embedding";

  /// Slices of each table, by rows. 0: as many as hosts have saved it.
  std::int32_t shards = 0;

  // The following fields are for kWord2vec.

  bool binary = false;
  RowLabel label = RowLabel::kKey;
};

/// Writes tables of a checkpoint in a format of other programs, one chunk of rows after the other,
/// and calls `converted` for each array. Every file gets its name when it is complete. kNpy also
/// writes the keys of tables that have some, a line for each row, to "TABLE.keys.txt", and removes
/// slots and keys of its tables that an earlier export left there. For kTensorFlow these are
/// "ckpt-1" and the file `checkpoint`, which names it the latest. kInt8 writes a step of the same
/// number to `out`, which it must not have yet and which is no run that trains, without optimizers
/// and slots; a row has a byte for each number, a scale and an offset. Rows of bfloat16 are written
/// as float32, which holds them exactly, but for kInt8. Throws KeyError naming the nearest table,
/// ValueError, IoError, DataLoss.
void export_tables(const ExportOptions& options, const Converted& converted);

}  // namespace embertable::jobs
