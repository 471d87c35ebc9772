#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace embertable::checkpoint {

/// The contents of a file as memory, to be read. Destroying it gives the memory back.
class FileMap {
 public:
  virtual ~FileMap() = default;
  std::span<const std::byte> bytes() const noexcept { return bytes_; }

  /// Bytes [offset, offset + size) are wanted soon.
  virtual void will_need(std::int64_t offset, std::int64_t size) const noexcept;

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

  /// Fills `out` from `offset`; gives the bytes read, fewer only at the end of the file.
  /// Thread-safe.
  virtual std::size_t read(std::int64_t offset, std::span<std::byte> out) const = 0;

  /// Says that these bytes will be read soon. May do nothing. Thread-safe.
  virtual void will_read(std::int64_t, std::int64_t) const noexcept {}

  virtual std::int64_t size() const = 0;

  /// All of it as it is now. The map may outlive the file's name and this object, not a change of
  /// its size. Here a copy; where the file is mapped, a later failure of the disk ends the process.
  virtual std::unique_ptr<FileMap> map() const;

  /// Returns once contents and size would survive a loss of power.
  virtual void sync() = 0;
};

/// A lock that is held as long as this lives, or its process.
class FileLock {
 public:
  virtual ~FileLock() = default;
};

/// An open directory. It stays the same directory whatever its path comes to name, and no call
/// follows a link. Every call throws IoError naming path, operation and cause.
class Directory {
 public:
  virtual ~Directory() = default;

  /// Names in it, sorted, without "." and "..".
  virtual std::vector<std::string> list() = 0;

  /// The directory that has this name here. Null if the name is that of a file or a link, or if
  /// nothing has it.
  virtual std::unique_ptr<Directory> open(const std::string& name) = 0;

  /// Removes a file, a link or an empty directory. What a link leads to stays.
  virtual void remove(const std::string& name) = 0;
};

/// Everything that checkpoints ask of a file system: the one place to replace for faults and
/// recordings. Every call throws IoError naming path, operation and cause. Thread-safe.
class FileSystem {
 public:
  struct Entry {
    bool directory = false;
    std::int64_t bytes = 0;  ///< size of a file
  };

  virtual ~FileSystem() = default;

  /// A new, empty file, for writing. Fails if the path exists.
  virtual std::unique_ptr<File> create(const std::filesystem::path& path) = 0;

  /// An existing file, for reading, also through links. Refuses what is neither a regular file nor
  /// a directory, without waiting for it: pipes, devices. A directory fails when it is read.
  virtual std::unique_ptr<File> open(const std::filesystem::path& path) = 0;

  /// An existing directory, also through links.
  virtual std::unique_ptr<Directory> open_directory(const std::filesystem::path& path) = 0;

  /// Looks through links. Nothing if there is no such path.
  virtual std::optional<Entry> stat(const std::filesystem::path& path) = 0;

  /// Names in a directory, sorted, without "." and "..".
  virtual std::vector<std::string> list(const std::filesystem::path& directory) = 0;

  /// One level. Fails if the path exists.
  virtual void make_directory(const std::filesystem::path& path) = 0;

  /// Gives a file or directory a new name, atomically. A file takes the name from another file.
  /// Fails if a directory has it. Requires: nothing has the new name of a directory.
  virtual void rename(const std::filesystem::path& from, const std::filesystem::path& to) = 0;

  /// Two existing directories trade names, atomically.
  virtual void exchange(const std::filesystem::path& a, const std::filesystem::path& b) = 0;

  /// Removes a file, a link or an empty directory. What a link leads to stays.
  virtual void remove(const std::filesystem::path& path) = 0;

  /// Returns once the names in a directory would survive a loss of power.
  virtual void sync_directory(const std::filesystem::path& directory) = 0;

  /// Locks the file `path`, made where it is missing, against every other call of this, of whatever
  /// process; the file then names this process. Throws StateError naming who holds the lock,
  /// IoError for a path that is a link: what it leads to is not written to.
  virtual std::unique_ptr<FileLock> lock(const std::filesystem::path& path) = 0;
};

/// The operating system's files.
FileSystem& local_files();

/// Makes a directory with its parents where they are missing, and syncs each parent that changed.
void make_directories(FileSystem& files, const std::filesystem::path& path);

/// What `lock` throws where a lock is held: `text` is what the file says.
[[noreturn]] void throw_held(const std::filesystem::path& path, const std::string& text);

/// Where a path's name stands: its parent, "." for a bare name.
std::filesystem::path directory_of(const std::filesystem::path& path);

/// Removes a file, a link, or a directory with all that it holds. No link is followed below the
/// directory of `path`, nor is one that takes a directory's place meanwhile: links are removed, and
/// what they lead to stays.
void remove_all(FileSystem& files, const std::filesystem::path& path);

/// The whole of a file. Throws DataLoss if it holds more than `limit` bytes.
std::string read_file(FileSystem& files, const std::filesystem::path& path, std::int64_t limit);

inline std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

}  // namespace embertable::checkpoint
