#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include "checkpoint/file.h"

namespace embertable::formats {

/// Best effort, where an error is already on its way or nothing depends on it.
void try_remove(checkpoint::FileSystem& files, const std::filesystem::path& path) noexcept;

/// "<path>.tempstate<random number>".
std::filesystem::path temporary_path(const std::filesystem::path& path);

/// A file that is written under a temporary name (`temporary_path`) and takes its own when it is
/// whole. All throw IoError.
class NewFile {
 public:
  NewFile(checkpoint::FileSystem& files, std::filesystem::path path);

  /// Removes it unless it has its name.
  ~NewFile();
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  const std::filesystem::path& temporary() const noexcept { return temporary_; }

  /// Bytes so far.
  std::int64_t size() const noexcept { return size_; }

  /// Appends. Small pieces are gathered.
  void write(std::span<const std::byte> bytes);

  /// Returns once all of it would survive a loss of power.
  void sync();

  /// Flushes, and takes the name from what has it.
  void commit();

  /// The caller gave it its name.
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
