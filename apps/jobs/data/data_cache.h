#pragma once

#include <cstdint>
#include <exception>
#include <filesystem>
#include <optional>
#include <span>
#include <string>

#include "apps/jobs/data/binary_file.h"
#include "apps/jobs/text/csv_reader.h"

namespace embertable::jobs {

/// Returns the folder in which a run with this directory keeps the data that it has read:
/// "OUT.cache" beside it, or "" without a directory.
std::string cache_of(const std::filesystem::path& out);

/// Keeps what was read from text in a binary file of this machine, so that a later run of the same
/// job need not read the text again. Never fails: what cannot be read from the cache is read from
/// the text, and what cannot be written is not kept.
class DataCache {
 public:
  /// The file is folder/NAME.bin. It is used only for the same `contents`, a text that describes
  /// everything that the data depend on. An empty `folder` means that there is no cache.
  DataCache(const std::string& folder, const std::string& name, const std::string& contents);

  /// Empty unless the file is whole and has these contents. fields(file, value) passes the fields
  /// of the value, always the same ones, to a BinaryReader or BinaryWriter. fits(value) checks the
  /// ranges of what was read: a hash shows damage by chance, not what another program wrote.
  template <class Value, class Fields, class Fits>
  std::optional<Value> read(const Fields& fields, const Fits& fits) const {
    if (path_.empty()) return std::nullopt;
    try {
      BinaryReader file(path_, key_);
      if (!file.whole()) return std::nullopt;
      std::optional<Value> value(std::in_place);
      fields(file, *value);
      if (file.whole() && fits(*value)) return value;
    } catch (const std::exception&) {  // bytes that are no id map, or more than there is memory for
    }
    return std::nullopt;
  }

  /// Writes the file under another name until it is complete. Where several runs write it at once,
  /// the first of them does.
  template <class Value, class Fields>
  void write(Value& value, const Fields& fields) const {
    if (path_.empty()) return;
    try {
      make_folder();
      BinaryWriter file(path_, key_);
      fields(file, value);
      file.finish();
    } catch (const std::exception&) {  // the bytes of keys need memory
    }
  }

  /// Returns what the file has, or else what make() gives, which is then written to the file.
  template <class Value, class Make, class Fields, class Fits>
  Value get(const Make& make, const Fields& fields, const Fits& fits) const {
    if (std::optional<Value> value = read<Value>(fields, fits)) return std::move(*value);
    Value value = make();
    write(value, fields);
    return value;
  }

 private:
  void make_folder() const;

  std::string path_;
  std::string key_;  ///< hash of the contents
};

/// True if these are `lists` lists, back to back, of numbers 0 <= x < numbers: splits [lists + 1]
/// rise from 0 to the number of values.
bool are_lists(std::span<const std::int64_t> splits, std::span<const std::int32_t> values,
               std::int64_t lists, std::int64_t numbers);

/// Describes files as far as possible without reading them: path, size, the times of the last
/// change of contents and of attributes, device and inode. Programs set the first time back, as
/// when they copy or unpack; none sets the second.
std::string file_stamps(std::span<const std::string> paths);

/// Describes how files are cut into fields.
std::string describe(const CsvFormat& format);

}  // namespace embertable::jobs
