#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "checkpoint/file.h"
#include "embertable/executor.h"

namespace embertable::checkpoint {

/// Removes a file if it can: for use when an error is already on its way or nothing depends on it.
void try_remove(FileSystem& files, const std::filesystem::path& path) noexcept;

/// Throws IoError if a directory has the name of `path` in its directory, which is open. A link is
/// none.
void refuse_directory(Directory& opened, const std::filesystem::path& path);

/// Returns the descriptor of this process that a path names, also through links: 1 for /dev/stdout.
std::optional<int> descriptor_named(const std::filesystem::path& path);

/// Returns "<path>.tempstate<16 random digits>", with a shorter name where that is too long for
/// one.
std::filesystem::path temporary_path(const std::filesystem::path& path);

/// Flushes the directory in which `path` has just got its name. If that fails, throws IoError,
/// which says that `path` is in this state ("is saved") until a power loss may undo it.
void flush_new_name(const std::filesystem::path& path, std::string_view state,
                    FunctionRef<void()> flush);

/// A file that gets a temporary name (`temporary_path`) when it is complete, and is then renamed;
/// where the file system knows no files without names, it has the temporary one from the start. All
/// calls throw IoError, the constructor also if what has the name is a directory, a pipe, a device
/// or a descriptor of this process, or if the name is too long. A relative path is that of the
/// working directory when the object is made.
class NewFile {
 public:
  NewFile(FileSystem& files, const std::filesystem::path& path);

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

  /// Gives the file its temporary name, if it has none yet: right before it is renamed, so that a
  /// process that ends leaves as little as possible.
  void take_temporary_name() { file_->take_path(); }

  /// Flushes the file and renames it, replacing a file or a link of that name. If its directory
  /// cannot be flushed then, the error says that the new file already has its name.
  void commit();

  /// Notes that the caller has renamed the file.
  void renamed() noexcept { file_.reset(); }

 private:
  void flush();

  FileSystem& files_;
  std::filesystem::path path_;
  std::filesystem::path temporary_;
  std::unique_ptr<File> file_;  ///< null: it has its name
  std::string gathered_;
  std::int64_t size_ = 0;
};

}  // namespace embertable::checkpoint
