// The files of this machine.
#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>
#include <vector>

#include "checkpoint/file.h"
#include "checkpoint/local/lock.h"
#include "checkpoint/local/system_calls.h"
#include "embertable/errors.h"

namespace embertable::checkpoint {
namespace {

namespace fs = std::filesystem;

class LocalMap final : public FileMap {
 public:
  LocalMap(const void* data, std::size_t size) {
    bytes_ = {static_cast<const std::byte*>(data), size};
  }
  ~LocalMap() override { ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size()); }
  LocalMap(const LocalMap&) = delete;
  LocalMap& operator=(const LocalMap&) = delete;

  bool fetch(std::int64_t offset, std::int64_t size) const noexcept override {
    constexpr int kPopulateRead = 22;  // MADV_POPULATE_READ, which older headers and kernels lack
    const std::int64_t page = ::sysconf(_SC_PAGESIZE);
    const std::int64_t first = offset / page * page;
    const auto memory = const_cast<std::byte*>(bytes_.data()) + first;
    const auto length = static_cast<std::size_t>(offset + size - first);
    ::madvise(memory, length, MADV_WILLNEED);
    return ::madvise(memory, length, kPopulateRead) == 0 || errno != EFAULT;
  }
};

/// Opens a path, or a name in an open directory.
int descriptor_of(int directory, const std::string& name, const fs::path& path,
                  const char* operation, int flags) {
  const int descriptor =
      retry([&] { return ::openat(directory, name.c_str(), flags | O_CLOEXEC, 0666); });
  if (descriptor >= 0) return descriptor;
  if (errno == ELOOP && (flags & O_NOFOLLOW) != 0)
    throw IoError(path.string() + ": cannot " + operation + ": it is a link");
  fail(path, operation, errno);
}

constexpr int kCreate = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW;

class LocalFile final : public File {
 public:
  LocalFile(fs::path path, int descriptor) : path_(std::move(path)), descriptor_(descriptor) {}
  ~LocalFile() override { ::close(descriptor_); }
  LocalFile(const LocalFile&) = delete;
  LocalFile& operator=(const LocalFile&) = delete;

  void write(std::span<const std::byte> bytes) override {
    while (!bytes.empty()) {
      const ssize_t done = retry([&] { return ::write(descriptor_, bytes.data(), bytes.size()); });
      if (done < 0) fail(path_, "write", errno);
      bytes = bytes.subspan(done);
      written_ += done;
    }
    start_writing_back();
  }

  std::size_t read(std::int64_t offset, std::span<std::byte> out) const override {
    std::size_t total = 0;
    while (total < out.size()) {
      const ssize_t done = retry([&] {
        return ::pread(descriptor_, out.data() + total, out.size() - total,
                       offset + static_cast<std::int64_t>(total));
      });
      if (done < 0) fail(path_, "read", errno);
      if (done == 0) break;
      total += static_cast<std::size_t>(done);
    }
    return total;
  }

  void will_read(std::int64_t offset, std::int64_t bytes) const noexcept override {
    ::posix_fadvise(descriptor_, offset, bytes, POSIX_FADV_WILLNEED);
  }

  std::int64_t size() const override { return found().st_size; }

  /// Returns S_IFREG, S_IFDIR or another type of file.
  mode_t type() const { return found().st_mode & S_IFMT; }

  void require_regular() const {
    if (type() != S_IFREG) throw IoError(path_.string() + ": cannot open: it is no regular file");
  }

  std::unique_ptr<FileMap> map() const override {
    const auto bytes = static_cast<std::size_t>(size());
    if (bytes == 0) return File::map();  // the kernel maps no empty range
    void* data = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, descriptor_, 0);
    if (data == MAP_FAILED) fail(path_, "map", errno);
    return std::make_unique<LocalMap>(data, bytes);
  }

  void sync() override {
    if (retry([&] { return ::fsync(descriptor_); }) != 0) fail(path_, "sync", errno);
  }

  /// Returns whether `take_path` can name a file that has no name yet.
  bool set_unnamed() { return unnamed_ = ::access(link_of_descriptor().c_str(), F_OK) == 0; }

  void take_path() override {
    if (!unnamed_) return;
    if (::linkat(AT_FDCWD, link_of_descriptor().c_str(), AT_FDCWD, path_.c_str(),
                 AT_SYMLINK_FOLLOW) != 0) {
      if (errno == EEXIST) fail(path_, "create", errno);
      copy_to_path();  // security modules and file systems may allow new files, but no links
    }
    unnamed_ = false;
  }

 private:
  void copy_to_path() {
    LocalFile copy(path_, descriptor_of(AT_FDCWD, path_, path_, "create", kCreate));
    std::vector<std::byte> bytes(1 << 20);
    std::int64_t at = 0;
    for (std::size_t got = read(at, bytes); got > 0; got = read(at, bytes)) {
      copy.write(std::span(bytes).first(got));
      at += static_cast<std::int64_t>(got);
    }
    copy.sync();
    std::swap(descriptor_, copy.descriptor_);
  }

  std::string link_of_descriptor() const { return "/proc/self/fd/" + std::to_string(descriptor_); }

  struct stat found() const {
    struct stat found {};
    if (::fstat(descriptor_, &found) != 0) fail(path_, "stat", errno);
    return found;
  }

  /// Makes the disk work while the rest of the file is produced, instead of all at once in `sync`,
  /// which still reports the errors.
  void start_writing_back() noexcept {
    constexpr std::int64_t kEvery = 8 << 20;
    if (written_ - written_back_ < kEvery) return;
    ::sync_file_range(descriptor_, written_back_, written_ - written_back_, SYNC_FILE_RANGE_WRITE);
    written_back_ = written_;
  }

  fs::path path_;
  int descriptor_;
  bool unnamed_ = false;
  std::int64_t written_ = 0;
  std::int64_t written_back_ = 0;  ///< up to here the kernel was asked to begin
};

/// Every call names entries relative to the descriptor.
class LocalDirectory final : public Directory {
 public:
  /// Owns the descriptor.
  LocalDirectory(fs::path path, int descriptor) : path_(std::move(path)), descriptor_(descriptor) {}
  ~LocalDirectory() override { ::close(descriptor_); }
  LocalDirectory(const LocalDirectory&) = delete;
  LocalDirectory& operator=(const LocalDirectory&) = delete;

  std::vector<std::string> list() override {
    // Another description has a position of its own, so that threads can list at once.
    const int own = reopened("list");
    const std::unique_ptr<DIR, int (*)(DIR*)> stream(::fdopendir(own), ::closedir);
    if (!stream) {
      const int cause = errno;
      ::close(own);
      fail(path_, "list", cause);
    }
    std::vector<std::string> names;
    for (;;) {
      errno = 0;
      const dirent* entry = ::readdir(stream.get());
      if (entry == nullptr) break;
      const std::string name = entry->d_name;
      if (name != "." && name != "..") names.push_back(name);
    }
    if (errno != 0) fail(path_, "list", errno);
    std::sort(names.begin(), names.end());
    return names;
  }

  std::unique_ptr<Directory> open(const std::string& name) override {
    return inner(name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  }

  std::unique_ptr<Directory> enter(const std::string& name) override {
    return inner(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  }

  std::unique_ptr<File> open_file(const std::string& name) override {
    // Opening must not wait for the writer of a pipe.
    const int opened = retry(
        [&] { return ::openat(descriptor_, name.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC); });
    if (opened < 0 && errno == ENOENT) return nullptr;
    if (opened < 0) fail(path_ / name, "open", errno);
    auto file = std::make_unique<LocalFile>(path_ / name, opened);
    if (file->type() == S_IFDIR) return nullptr;
    file->require_regular();
    return file;
  }

  std::unique_ptr<File> create(const std::string& name) override {
    return std::make_unique<LocalFile>(
        path_ / name, descriptor_of(descriptor_, name, path_ / name, "create", kCreate));
  }

  void make_directory(const std::string& name) override {
    if (::mkdirat(descriptor_, name.c_str(), 0777) != 0)
      fail(path_ / name, "make directory", errno);
  }

  void rename(const std::string& from, const std::string& to) override {
    if (::renameat(descriptor_, from.c_str(), descriptor_, to.c_str()) != 0)
      fail(path_ / from, "rename to " + to, errno);
  }

  void remove(const std::string& name) override {
    if (::unlinkat(descriptor_, name.c_str(), 0) == 0) return;
    if (errno == EISDIR && ::unlinkat(descriptor_, name.c_str(), AT_REMOVEDIR) == 0) return;
    fail(path_ / name, "remove", errno);
  }

  void sync() override {
    if (retry([&] { return ::fsync(descriptor_); }) == 0) return;
    if (errno != EINVAL && errno != EROFS) fail(path_, "sync", errno);
  }

  std::unique_ptr<FileLock> lock(const std::string& name) override {
    for (int attempt = 0; attempt < kMaxLocks; ++attempt) {
      auto lock = std::make_unique<LocalLock>(lock_file(name));
      lock->take(path_ / name, reopened("lock"));
      // Whoever removed the file meanwhile may have made and locked another.
      if (lock->is_named(descriptor_, name)) return lock;
    }
    throw_never_the_same(name);
  }

  std::unique_ptr<FileLock> wait_for_lock(const std::string& name) override {
    for (int attempt = 0; attempt < kMaxLocks; ++attempt) {
      auto turn = std::make_unique<LocalTurn>(lock_file(name), name);
      if (turn->wait(path_ / name, reopened("lock"))) return turn;
    }
    throw_never_the_same(name);
  }

 private:
  /// Files that are locked one after the other, because each was removed meanwhile.
  static constexpr int kMaxLocks = 1000;

  [[noreturn]] void throw_never_the_same(const std::string& name) const {
    throw IoError((path_ / name).string() + ": cannot lock: it was another file after each of " +
                  std::to_string(kMaxLocks) + " locks");
  }

  /// Returns another description of the directory.
  int reopened(const char* operation) const {
    return descriptor_of(descriptor_, ".", path_, operation, O_RDONLY | O_DIRECTORY);
  }

  int lock_file(const std::string& name) const {
    return descriptor_of(descriptor_, name, path_ / name, "lock", O_RDWR | O_CREAT | O_NOFOLLOW);
  }

  std::unique_ptr<Directory> inner(const std::string& name, int flags) {
    const int opened = retry([&] { return ::openat(descriptor_, name.c_str(), flags); });
    if (opened >= 0) return std::make_unique<LocalDirectory>(path_ / name, opened);
    if (errno == ENOENT || errno == ENOTDIR || errno == ELOOP) return nullptr;
    fail(path_ / name, "open directory", errno);
  }

  fs::path path_;
  int descriptor_;
};

class LocalFiles final : public FileSystem {
 public:
  std::unique_ptr<File> create(const fs::path& path) override {
    return open_as(path, "create", kCreate);
  }

  std::unique_ptr<File> create_unnamed(const fs::path& path) override {
    const int descriptor = retry(
        [&] { return ::open(directory_of(path).c_str(), O_RDWR | O_TMPFILE | O_CLOEXEC, 0666); });
    if (descriptor < 0) return create(path);
    auto file = std::make_unique<LocalFile>(path, descriptor);
    if (!file->set_unnamed()) return create(path);
    return file;
  }

  /// Opens without waiting for a writer of a pipe. Pipes and devices are then refused.
  std::unique_ptr<File> open(const fs::path& path) override {
    auto file = open_as(path, "open", O_RDONLY | O_NONBLOCK);
    if (file->type() != S_IFDIR) file->require_regular();
    return file;
  }

  std::unique_ptr<Directory> open_directory(const fs::path& path) override {
    return std::make_unique<LocalDirectory>(
        path, descriptor_of(AT_FDCWD, path, path, "open directory", O_RDONLY | O_DIRECTORY));
  }

  std::optional<Entry> stat(const fs::path& path) override {
    struct stat found {};
    if (::stat(path.c_str(), &found) != 0) {
      if (errno == ENOENT || errno == ENOTDIR) return std::nullopt;
      fail(path, "stat", errno);
    }
    return Entry{.directory = S_ISDIR(found.st_mode),
                 .bytes = found.st_size,
                 .special = !S_ISDIR(found.st_mode) && !S_ISREG(found.st_mode)};
  }

  std::vector<std::string> list(const fs::path& directory) override {
    const int descriptor =
        descriptor_of(AT_FDCWD, directory, directory, "list", O_RDONLY | O_DIRECTORY);
    return LocalDirectory(directory, descriptor).list();
  }

  void make_directory(const fs::path& path) override {
    if (::mkdir(path.c_str(), 0777) == 0) return;
    const int cause = errno;
    if (cause == EEXIST && !stat(path))
      throw IoError(path.string() + ": cannot make directory: it is a link that leads nowhere");
    fail(path, "make directory", cause);
  }

  void rename(const fs::path& from, const fs::path& to) override {
    if (::rename(from.c_str(), to.c_str()) == 0) return;
    if (errno == EISDIR) throw IoError(to.string() + ": cannot replace: it is a directory");
    fail(from, "rename to " + to.filename().string(), errno);
  }

  void remove(const fs::path& path) override {
    if (::remove(path.c_str()) != 0) fail(path, "remove", errno);
  }

  void sync_directory(const fs::path& directory) override { open_directory(directory)->sync(); }

 private:
  static std::unique_ptr<LocalFile> open_as(const fs::path& path, const char* operation,
                                            int flags) {
    return std::make_unique<LocalFile>(path, descriptor_of(AT_FDCWD, path, path, operation, flags));
  }
};

}  // namespace

FileSystem& local_files() {
  static LocalFiles files;
  return files;
}

}  // namespace embertable::checkpoint
