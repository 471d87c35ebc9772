#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "apps/convert/table_format.h"

namespace embertable::jobs {

/// What names a row in a file of words.
enum class RowLabel : std::uint8_t {
  kKey,   ///< its key, where a job has given it one, else its number
  kName,  ///< its name, blanks replaced by '_'; without one as kKey
  kRow,   ///< its number
};

struct ExportOptions {
  TableFormat format = TableFormat::kTensorFlow;
  std::filesystem::path
      from;  ///< a run's directory, of which the latest step is taken, or a step's

  /// A directory; of kWord2vec with one table the file.
  std::filesystem::path out;

  std::vector<std::string> tables;  ///< empty: all
  bool slots = true;                ///< also writes optimizer slots; kWord2vec never has them

  // kTensorFlow

  /// The attributes from the root of the checkpoint to the object that has the tables, with '/'
  /// between them. Empty: the root has them.
  std::string object = "embedding";

  /// Slices of each table, by rows. 0: as many as hosts have saved it.
  std::int32_t shards = 0;

  // kWord2vec

  bool binary = false;
  RowLabel label = RowLabel::kKey;
};

/// Writes tables of a checkpoint for others, one chunk of rows after the other: `converted` hears
/// of each array. Every file takes its name when it is whole. Of kTensorFlow there is "ckpt-1" and
/// the file `checkpoint` that names it the latest. Throws KeyError naming the nearest table,
/// ValueError, IoError, DataLoss.
void export_tables(const ExportOptions& options, const Converted& converted);

}  // namespace embertable::jobs
