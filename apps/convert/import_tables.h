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

  /// kTensorFlow: a checkpoint's prefix, its index, or a directory whose latest is taken. kNpy: a
  /// file, or a directory of them. kWord2vec: a file.
  std::filesystem::path from;

  std::filesystem::path out;  ///< a run's directory, which gets the step
  std::int64_t step = 0;

  /// "NAME", or "NAME=SOURCE" with the key or file of its rows; slots "TABLE/SLOT=SOURCE". Without
  /// tables, every array of two axes that is not found to be a slot is one. Of kWord2vec at most
  /// one name, else the file's.
  std::vector<std::string> tables, slots;

  Combiner combiner = Combiner::kMean;  ///< combiner that the checkpoint gives its tables
  bool binary = false;                  ///< kWord2vec
};

struct ImportReport {
  std::filesystem::path step;         ///< its directory
  std::vector<std::string> left_out;  ///< keys or files that are in no table
};

/// Saves tables that others have written as a step, from which engines restore: float32, and
/// float16 and bfloat16 made float32. Rows are read and written chunk by chunk.
///
/// A tensor's name is the last part of its path, or its key where that is no path. The array
/// "T/s" of the same place and as many rows is slot s of table T, row-wise where it has one number
/// a row; so is one that an optimizer of Keras keeps for it. The words of a file are the keys of
/// the rows, as a job has them.
///
/// Throws KeyError for a source that is not there, ValueError for what cannot be a table or slot,
/// for no table and two of one name; StateError if the step is there; IoError, DataLoss.
ImportReport import_tables(const ImportOptions& options, const Converted& converted);

}  // namespace embertable::jobs
