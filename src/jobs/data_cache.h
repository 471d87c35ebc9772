#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "jobs/data_set.h"
#include "jobs/model.h"
#include "jobs/records_spec.h"

namespace embertable::jobs {

/// Where a run with this directory keeps the data that it has read: beside it, "OUT.cache". "" for
/// none.
std::string cache_of(const std::filesystem::path& out);

/// A data set that was read, in a binary file of this machine, so that a later run of the same job
/// need not read the text again. It counts only for the same [data], [ids] and [split], and for
/// files of the same path, size and time of change. Never an error: what cannot be read is read
/// anew, what cannot be written is not.
class DataCache {
 public:
  /// The cache is options.cache/records.bin.
  DataCache(const RecordsSpec& records, const DataOptions& options);

  /// Nothing without a file that is whole and of the same job and files.
  std::optional<DataSet> read() const;

  /// Under a temporary name until it is whole.
  void write(const DataSet& data) const;

  const std::string& path() const noexcept { return path_; }

 private:
  std::string path_;
  std::string key_;  ///< 32 digits
};

}  // namespace embertable::jobs
