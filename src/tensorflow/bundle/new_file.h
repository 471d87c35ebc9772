#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include "checkpoint/file.h"

namespace embertable::formats {

/// Removes a file if it can: for use when an error is already on its way or nothing depends on it.
void try_remove(checkpoint::FileSystem& files, const std::filesystem::path& path) noexcept;

/// Throws IoError if a directory has the name of `path` in its directory, which is open. A link is
/// none.
void refuse_directory(checkpoint::Directory& opened, const std::filesystem::path& path);

/// Returns "<path>.tempstate<random number>".
std::filesystem::path temporary_path(const std::filesystem::path& path);

/// A file that is written under a temporary name (`temporary_path`) and renamed when it is
/// complete. All calls throw IoError, the constructor also if a directory has the name.
class NewFile {
 public:
  NewFile(checkpoint::FileSystem& files, std::filesystem::path path);

  /// Removes the file unless it has been renamed.
  ~NewFile();
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  const std::filesystem::path& temporary() const noexcept { return temporary_; }

  /// Returns the bytes written so far.
  std::int64_t size() const noexcept { return size_; }

  /// Appends bytes. Small pieces are buffered.
  void write(std::span<const std::byte> bytes);

  /// Returns once the whole file would survive a power loss.
  void sync();

  /// Flushes the file and renames it, replacing a file or a link of that name.
  void commit();

  /// Notes that the caller has renamed the file.
  void renamed() noexcept { file_.reset(); }

 private:
  void flush();

  checkpoint::FileSystem& files_;
  std::filesystem::path path_;
  std::filesystem::path temporary_;
  std::unique_ptr<checkpoint::File> file_;  ///< null: it has its name
  std::string gathered_;
  std::int64_t size_ = 0;
};

}  // namespace embertable::formats
