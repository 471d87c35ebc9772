#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "apps/convert/table_format.h"
#include "embertable/config.h"

namespace embertable::jobs {

struct ImportOptions {
  TableFormat format = TableFormat::kTensorFlow;

  /// For kTensorFlow a checkpoint's prefix, its index, or a directory, whose latest checkpoint is
  /// read; for kNpy a file or a directory of them; for kWord2vec a file.
  std::filesystem::path from;

  std::filesystem::path out;  ///< directory of the run to which the step is added
  std::int64_t step = 0;

  /// "NAME", or "NAME=SOURCE" with the key or file of its rows; slots "TABLE/SLOT=SOURCE". Without
  /// tables, every array of two axes that is not found to be a slot is a table. For kWord2vec at
  /// most one name is given; the default is that of the file.
  std::vector<std::string> tables, slots;

  Combiner combiner = Combiner::kMean;  ///< combiner that the checkpoint gives its tables
  bool binary = false;                  ///< kWord2vec
};

struct ImportReport {
  std::filesystem::path step;         ///< directory of the step
  std::vector<std::string> left_out;  ///< keys or files that are in no table
};

/// Saves tables that other programs have written as a step from which engines restore. Numbers are
/// stored as float32; float16 and bfloat16 are converted. Rows are read and written chunk by chunk.
///
/// A tensor's name is the last part of its path, or its key if that is not a path. The array "T/s"
/// of the same place and with the same number of rows is slot s of table T, row-wise if it has one
/// number per row; so is an array that an optimizer of Keras keeps for the table. The words of a
/// file, and the lines of "TABLE.keys.txt" beside an .npy file, become the keys of the rows, texts.
///
/// Throws KeyError for a source that does not exist; ValueError for what cannot be a table or slot,
/// for no table and for two of one name, and for a run that `embertable train` saved, which could
/// not go on from tables alone; StateError if the step exists; IoError, DataLoss.
ImportReport import_tables(const ImportOptions& options, const Converted& converted);

}  // namespace embertable::jobs
