#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace embertable::checkpoint {

/// Contents of a file as read-only memory. Destroying it frees the memory.
class FileMap {
 public:
  virtual ~FileMap() = default;
  std::span<const std::byte> bytes() const noexcept { return bytes_; }

  /// Brings bytes [offset, offset + size) into memory. Returns false if the file has been cut short
  /// and has them no longer, where the system can tell: reading them would then end the process.
  virtual bool fetch(std::int64_t offset, std::int64_t size) const noexcept;

 protected:
  std::span<const std::byte> bytes_;
};

/// An open file. Every call throws IoError naming path, operation and cause. Destroying it closes
/// it.
class File {
 public:
  virtual ~File() = default;

  /// Appends all of `bytes`.
  virtual void write(std::span<const std::byte> bytes) = 0;

  /// Fills `out` from `offset`; returns the number of bytes read, less than asked for only at the
  /// end of the file. Thread-safe.
  virtual std::size_t read(std::int64_t offset, std::span<std::byte> out) const = 0;

  /// Announces that these bytes will be read soon. May do nothing. Thread-safe.
  virtual void will_read(std::int64_t, std::int64_t) const noexcept {}

  virtual std::int64_t size() const = 0;

  /// Returns the contents of the whole file as they are now. The map may outlive the file's name
  /// and this object, but not a change of the file's size. This default copies; where a file is
  /// mapped, a later failure of the disk ends the process.
  virtual std::unique_ptr<FileMap> map() const;

  /// Returns once contents and size would survive a power loss.
  virtual void sync() = 0;

  /// Gives a file of FileSystem::create_unnamed its path, if it has none yet. Fails if the path
  /// exists.
  virtual void take_path() {}
};

/// A lock that is held until this object is destroyed or its process ends.
class FileLock {
 public:
  virtual ~FileLock() = default;
};

/// An open directory. It stays the same directory whatever its path comes to name. Names in it may
/// be links: calls that change something change the link and never its target. Every call throws
/// IoError naming path, operation and cause. Thread-safe.
class Directory {
 public:
  virtual ~Directory() = default;

  /// Returns the names in it, sorted, without "." and "..".
  virtual std::vector<std::string> list() = 0;

  /// Opens the directory that has this name here. Null if the name is that of a file or a link, or
  /// does not exist.
  virtual std::unique_ptr<Directory> open(const std::string& name) = 0;

  /// Opens the directory that has this name here, also through a link. Null if there is none.
  virtual std::unique_ptr<Directory> enter(const std::string& name) = 0;

  /// Opens a file for reading, also through a link; refuses what FileSystem::open refuses. Null if
  /// the name is that of a directory or does not exist.
  virtual std::unique_ptr<File> open_file(const std::string& name) = 0;

  /// Creates an empty file for writing. Fails if the name exists.
  virtual std::unique_ptr<File> create(const std::string& name) = 0;

  /// Creates a directory. Fails if the name exists.
  virtual void make_directory(const std::string& name) = 0;

  /// Renames a file, a link or a directory atomically. Requires: nothing has the new name.
  virtual void rename(const std::string& from, const std::string& to) = 0;

  /// Removes a file, a link or an empty directory.
  virtual void remove(const std::string& name) = 0;

  /// Returns once the names in it would survive a power loss, or at once where the file system does
  /// not flush directories, such as read-only ones.
  virtual void sync() = 0;

  /// Locks a file, which is created if missing, against every other call of this in any process;
  /// the file then names this process. Where the file system can lock directories, this one is
  /// locked too: removing the file does not make room for a second owner. Throws StateError naming
  /// the holder of the lock, IoError for a name that is a link.
  virtual std::unique_ptr<FileLock> lock(const std::string& name) = 0;

  /// Waits until nobody else in any process has what this returns for the name. A file of this name
  /// is there meanwhile. Throws IoError for a name that is a link, and what an Interruption throws.
  virtual std::unique_ptr<FileLock> wait_for_lock(const std::string& name) = 0;
};

/// Everything that checkpoints need of a file system: the one interface to replace for fault
/// injection and recordings. Every call throws IoError naming path, operation and cause.
/// Thread-safe.
class FileSystem {
 public:
  struct Entry {
    bool directory = false;
    std::int64_t bytes = 0;  ///< size of a file
    bool special = false;    ///< a pipe, a device or a socket
  };

  virtual ~FileSystem() = default;

  /// Creates an empty file for writing. Fails if the path exists.
  virtual std::unique_ptr<File> create(const std::filesystem::path& path) = 0;

  /// Creates an empty file for writing that has this path from File::take_path on: if the process
  /// ends before, nothing of it is left. Where the file system has no such files, it has the path
  /// at once.
  virtual std::unique_ptr<File> create_unnamed(const std::filesystem::path& path) {
    return create(path);
  }

  /// Opens an existing file for reading, also through links. Refuses, without waiting, whatever is
  /// neither a regular file nor a directory: pipes, devices. A directory fails when it is read.
  virtual std::unique_ptr<File> open(const std::filesystem::path& path) = 0;

  /// Opens an existing directory, also through links.
  virtual std::unique_ptr<Directory> open_directory(const std::filesystem::path& path) = 0;

  /// Follows links. Empty if the path does not exist.
  virtual std::optional<Entry> stat(const std::filesystem::path& path) = 0;

  /// Returns the names in a directory, sorted, without "." and "..".
  virtual std::vector<std::string> list(const std::filesystem::path& directory) = 0;

  /// Creates one directory, without parents. Fails if the path exists.
  virtual void make_directory(const std::filesystem::path& path) = 0;

  /// Renames a file or directory atomically. A file replaces another file of the new name. Fails if
  /// a directory has it. Requires: nothing has the new name of a directory.
  virtual void rename(const std::filesystem::path& from, const std::filesystem::path& to) = 0;

  /// Removes a file, a link or an empty directory. The target of a link stays.
  virtual void remove(const std::filesystem::path& path) = 0;

  /// Returns once the names in a directory would survive a power loss.
  virtual void sync_directory(const std::filesystem::path& directory) = 0;
};

/// The operating system's files.
FileSystem& local_files();

/// Returns how many files of a step may stay open: a quarter of what the process may open, at most
/// 256.
std::size_t most_open_files() noexcept;

/// Creates a directory with its missing parents, and syncs each parent that changed. Another
/// process may create the same ones meanwhile.
void make_directories(FileSystem& files, const std::filesystem::path& path);

/// Throws what `lock` throws if a lock is held: `text` is the content of the lock file.
[[noreturn]] void throw_held(const std::filesystem::path& path, const std::string& text);

/// Returns the parent of a path, "." for a bare name.
std::filesystem::path directory_of(const std::filesystem::path& path);

/// Removes a file, a link, or a directory with all its contents. Follows no link, not even one that
/// replaces a directory meanwhile: links are removed, and their targets stay.
void remove_all(Directory& directory, const std::string& name);

/// Return the contents of a file. Throw DataLoss naming `path` if it holds more than `limit` bytes.
std::string read_file(FileSystem& files, const std::filesystem::path& path, std::int64_t limit);
std::string read_file(const File& file, const std::filesystem::path& path, std::int64_t limit);

inline std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

}  // namespace embertable::checkpoint
