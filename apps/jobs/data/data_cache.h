#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>

#include "apps/jobs/data/binary_file.h"
#include "apps/jobs/text/csv_reader.h"

namespace embertable::jobs {

/// Where a run with this directory keeps the data that it has read: beside it, "OUT.cache". "" for
/// none.
std::string cache_of(const std::filesystem::path& out);

/// What was read from text, in a binary file of this machine, so that a later run of the same job
/// need not read the text again. Never an error: what cannot be read is read anew, what cannot be
/// written is not.
class DataCache {
 public:
  /// The file is folder/NAME.bin; it counts only for the same `contents`, a text of all that the
  /// data depend on. An empty `folder` means that there is no cache.
  DataCache(const std::string& folder, const std::string& name, const std::string& contents);

  /// Nothing without a file that is whole and of these contents. fields(file, value) hands the
  /// fields of the value to a BinaryReader or BinaryWriter, which are always the same.
  template <class Value, class Fields>
  std::optional<Value> read(const Fields& fields) const {
    if (path_.empty()) return std::nullopt;
    BinaryReader file(path_, key_);
    if (!file.whole()) return std::nullopt;
    std::optional<Value> value(std::in_place);
    fields(file, *value);
    if (!file.whole()) return std::nullopt;
    return value;
  }

  /// Under a temporary name until it is whole.
  template <class Value, class Fields>
  void write(Value& value, const Fields& fields) const {
    if (path_.empty()) return;
    const std::string temporary = begin();
    BinaryWriter file(temporary, key_);
    fields(file, value);
    end(temporary, file.finish());
  }

  /// What the file has, or else what make() gives, which the file has then.
  template <class Value, class Make, class Fields>
  Value get(const Make& make, const Fields& fields) const {
    if (std::optional<Value> value = read<Value>(fields)) return std::move(*value);
    Value value = make();
    write(value, fields);
    return value;
  }

 private:
  std::string begin() const;
  void end(const std::string& temporary, bool whole) const;

  std::string path_;
  std::string key_;  ///< a hash of the contents
};

/// Which files they are, as far as can be said without reading them: path, size and time of change.
std::string file_stamps(std::span<const std::string> paths);

/// The same of how they are cut into fields.
std::string describe(const CsvFormat& format);

}  // namespace embertable::jobs
