#pragma once

#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "checkpoint/new_file.h"

namespace embertable::jobs {

/// A text that a command leaves. A file gets its name once it is complete and on disk; what is no
/// regular file, such as a pipe, a device or /dev/stdout, is written directly, as no new file may
/// take its place. All calls throw IoError naming the path; a file of that name is as it was then.
class ResultFile {
 public:
  /// `path`: "" for standard output.
  explicit ResultFile(std::string path);
  ~ResultFile();
  ResultFile(const ResultFile&) = delete;
  ResultFile& operator=(const ResultFile&) = delete;

  /// True if a path is "" or names standard output, as /dev/stdout does.
  static bool is_standard_output(const std::string& path);

  /// Appends a text, which is there at once where the file has its name already.
  void write(std::string_view text);

  /// Ends the file.
  void commit();

 private:
  [[noreturn]] void fail() const;

  std::string path_;
  std::optional<checkpoint::NewFile> new_file_;
  std::FILE* stream_ = nullptr;  ///< null: new_file_ is written
};

/// Names of a file that another library writes: a temporary one until `commit`, then its own.
class LateName {
 public:
  /// Throws IoError if something of that name is there and is no regular file.
  explicit LateName(std::filesystem::path path);

  /// Removes the file unless it has its name.
  ~LateName();
  LateName(const LateName&) = delete;
  LateName& operator=(const LateName&) = delete;

  const std::filesystem::path& path() const noexcept { return path_; }
  const std::filesystem::path& temporary() const noexcept { return temporary_; }

  /// Gives the file, which is complete and closed, its name, in the place of another file. Throws
  /// IoError.
  void commit();

 private:
  std::filesystem::path path_, temporary_;
};

/// Writes a whole ResultFile.
void write_result(const std::string& path, std::string_view text);

}  // namespace embertable::jobs
