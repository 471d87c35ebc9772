#include "checkpoint/file.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "embertable/errors.h"

namespace embertable::checkpoint {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const fs::path& path, const std::string& operation, int cause) {
  throw IoError(path.string() + ": cannot " + operation + ": " +
                std::generic_category().message(cause));
}

/// Repeats a call that a signal interrupted.
template <class Call>
auto retry(Call call) {
  for (;;) {
    const auto result = call();
    if (result >= 0 || errno != EINTR) return result;
  }
}

class LocalMap final : public FileMap {
 public:
  LocalMap(const void* data, std::size_t size) {
    bytes_ = {static_cast<const std::byte*>(data), size};
  }
  ~LocalMap() override { ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size()); }
  LocalMap(const LocalMap&) = delete;
  LocalMap& operator=(const LocalMap&) = delete;

  void will_need(std::int64_t offset, std::int64_t size) const noexcept override {
    const std::int64_t page = ::sysconf(_SC_PAGESIZE);
    const std::int64_t first = offset / page * page;
    ::madvise(const_cast<std::byte*>(bytes_.data()) + first,
              static_cast<std::size_t>(offset + size - first), MADV_WILLNEED);
  }
};

/// Contents of a file that cannot be mapped.
class CopiedMap final : public FileMap {
 public:
  explicit CopiedMap(const File& file) : copy_(file.size()) {
    copy_.resize(file.read(0, copy_));
    bytes_ = copy_;
  }

 private:
  std::vector<std::byte> copy_;
};

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

  std::int64_t size() const override {
    struct stat found {};
    if (::fstat(descriptor_, &found) != 0) fail(path_, "stat", errno);
    return found.st_size;
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

 private:
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
  std::int64_t written_ = 0;
  std::int64_t written_back_ = 0;  ///< up to here the kernel was asked to begin
};

/// Returns the whole of a short text; "" if it cannot be read.
std::string short_text(int descriptor) {
  char text[64];
  const ssize_t size = retry([&] { return ::pread(descriptor, text, sizeof text, 0); });
  return {text, size < 0 ? 0 : static_cast<std::size_t>(size)};
}

class LocalLock final : public FileLock {
 public:
  explicit LocalLock(int descriptor) : descriptor_(descriptor) {}
  ~LocalLock() override {
    // A forked child shares the lock and must not release its parent's; a parent releases it for
    // all.
    if (::getpid() == process_) ::flock(descriptor_, LOCK_UN);
    ::close(descriptor_);
  }
  LocalLock(const LocalLock&) = delete;
  LocalLock& operator=(const LocalLock&) = delete;

  void take(const fs::path& path) {
    if (retry([&] { return ::flock(descriptor_, LOCK_EX | LOCK_NB); }) != 0) {
      if (errno == EWOULDBLOCK) throw_held(path, short_text(descriptor_));
      fail(path, "lock", errno);
    }
    const std::string holder = std::to_string(process_) + "\n";
    if (::ftruncate(descriptor_, 0) != 0 ||
        retry([&] { return ::pwrite(descriptor_, holder.data(), holder.size(), 0); }) < 0)
      fail(path, "lock", errno);
  }

 private:
  int descriptor_;
  pid_t process_ = ::getpid();
};

/// Every call names entries relative to the descriptor.
class LocalDirectory final : public Directory {
 public:
  /// Owns the descriptor.
  LocalDirectory(fs::path path, int descriptor)
      : path_(std::move(path)), stream_(::fdopendir(descriptor), ::closedir) {
    if (stream_) return;
    const int cause = errno;
    ::close(descriptor);
    fail(path_, "open directory", cause);
  }

  std::vector<std::string> list() override {
    std::vector<std::string> names;
    ::rewinddir(stream_.get());
    for (;;) {
      errno = 0;
      const dirent* entry = ::readdir(stream_.get());
      if (entry == nullptr) break;
      const std::string name = entry->d_name;
      if (name != "." && name != "..") names.push_back(name);
    }
    if (errno != 0) fail(path_, "list", errno);
    std::sort(names.begin(), names.end());
    return names;
  }

  std::unique_ptr<Directory> open(const std::string& name) override {
    constexpr int kFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    const int inner = retry([&] { return ::openat(descriptor(), name.c_str(), kFlags); });
    if (inner >= 0) return std::make_unique<LocalDirectory>(path_ / name, inner);
    if (errno == ENOENT || errno == ENOTDIR || errno == ELOOP) return nullptr;
    fail(path_ / name, "open directory", errno);
  }

  void remove(const std::string& name) override {
    if (::unlinkat(descriptor(), name.c_str(), 0) == 0) return;
    if (errno == EISDIR && ::unlinkat(descriptor(), name.c_str(), AT_REMOVEDIR) == 0) return;
    fail(path_ / name, "remove", errno);
  }

 private:
  int descriptor() const { return ::dirfd(stream_.get()); }

  fs::path path_;
  std::unique_ptr<DIR, int (*)(DIR*)> stream_;
};

class LocalFiles final : public FileSystem {
 public:
  std::unique_ptr<File> create(const fs::path& path) override {
    return open_as(path, "create", O_WRONLY | O_CREAT | O_EXCL);
  }

  /// Opens without waiting for a writer of a pipe. Pipes and devices are then refused.
  std::unique_ptr<File> open(const fs::path& path) override {
    const int descriptor = descriptor_of(path, "open", O_RDONLY | O_NONBLOCK);
    auto file = std::make_unique<LocalFile>(path, descriptor);
    struct stat found {};
    if (::fstat(descriptor, &found) != 0) fail(path, "open", errno);
    if (!S_ISREG(found.st_mode) && !S_ISDIR(found.st_mode))
      throw IoError(path.string() + ": cannot open: it is no regular file");
    return file;
  }

  std::unique_ptr<Directory> open_directory(const fs::path& path) override {
    return std::make_unique<LocalDirectory>(
        path, descriptor_of(path, "open directory", O_RDONLY | O_DIRECTORY));
  }

  std::optional<Entry> stat(const fs::path& path) override {
    struct stat found {};
    if (::stat(path.c_str(), &found) != 0) {
      if (errno == ENOENT || errno == ENOTDIR) return std::nullopt;
      fail(path, "stat", errno);
    }
    return Entry{.directory = S_ISDIR(found.st_mode), .bytes = found.st_size};
  }

  std::vector<std::string> list(const fs::path& directory) override {
    return LocalDirectory(directory, descriptor_of(directory, "list", O_RDONLY | O_DIRECTORY))
        .list();
  }

  void make_directory(const fs::path& path) override {
    if (::mkdir(path.c_str(), 0777) != 0) fail(path, "make directory", errno);
  }

  void rename(const fs::path& from, const fs::path& to) override {
    if (::rename(from.c_str(), to.c_str()) != 0)
      fail(from, "rename to " + to.filename().string(), errno);
  }

  void exchange(const fs::path& a, const fs::path& b) override {
    constexpr unsigned int kExchange = 2;  // RENAME_EXCHANGE, which older headers lack
    if (::syscall(SYS_renameat2, AT_FDCWD, a.c_str(), AT_FDCWD, b.c_str(), kExchange) != 0)
      fail(a, "trade names with " + b.filename().string(), errno);
  }

  void remove(const fs::path& path) override {
    if (::remove(path.c_str()) != 0) fail(path, "remove", errno);
  }

  void sync_directory(const fs::path& directory) override {
    open_as(directory, "open directory", O_RDONLY | O_DIRECTORY)->sync();
  }

  std::unique_ptr<FileLock> lock(const fs::path& path) override {
    auto lock =
        std::make_unique<LocalLock>(descriptor_of(path, "lock", O_RDWR | O_CREAT | O_NOFOLLOW));
    lock->take(path);
    return lock;
  }

 private:
  static int descriptor_of(const fs::path& path, const char* operation, int flags) {
    const int descriptor = retry([&] { return ::open(path.c_str(), flags | O_CLOEXEC, 0666); });
    if (descriptor >= 0) return descriptor;
    if (errno == ELOOP && (flags & O_NOFOLLOW) != 0)
      throw IoError(path.string() + ": cannot " + operation + ": it is a link");
    fail(path, operation, errno);
  }

  static std::unique_ptr<File> open_as(const fs::path& path, const char* operation, int flags) {
    return std::make_unique<LocalFile>(path, descriptor_of(path, operation, flags));
  }
};

/// Recurses once for each level of directories, with a descriptor for each: the limit of open files
/// ends the recursion long before the stack does.
void remove_from(Directory& directory, const std::string& name) {
  if (const std::unique_ptr<Directory> inner = directory.open(name))
    for (const std::string& held : inner->list()) remove_from(*inner, held);
  directory.remove(name);
}

}  // namespace

void FileMap::will_need(std::int64_t, std::int64_t) const noexcept {}

std::unique_ptr<FileMap> File::map() const { return std::make_unique<CopiedMap>(*this); }

FileSystem& local_files() {
  static LocalFiles files;
  return files;
}

void make_directories(FileSystem& files, const fs::path& path) {
  if (path.empty()) return;
  if (const auto found = files.stat(path)) {
    if (!found->directory) fail(path, "make directory", ENOTDIR);
    return;
  }
  make_directories(files, path.parent_path());
  if (!path.has_filename()) return;  // "a/b/" after "a/b"
  files.make_directory(path);
  files.sync_directory(directory_of(path));
}

void throw_held(const fs::path& path, const std::string& text) {
  const std::string process = text.substr(0, text.find('\n'));
  const std::string holder = process.empty() ? "another process" : "process " + process;
  const bool ours = process == std::to_string(::getpid());
  throw StateError(directory_of(path).string() + ": cannot save there: " +
                   (ours ? "this process holds its lock already" : holder + " holds its lock"));
}

fs::path directory_of(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

void remove_all(FileSystem& files, const fs::path& path) {
  remove_from(*files.open_directory(directory_of(path)), path.filename());
}

std::string read_file(FileSystem& files, const fs::path& path, std::int64_t limit) {
  const std::unique_ptr<File> file = files.open(path);
  const std::int64_t bytes = file->size();
  if (bytes > limit)
    throw DataLoss(path.string() + ": cannot read: " + std::to_string(bytes) + " bytes, at most " +
                   std::to_string(limit) + " are read");
  std::string text(bytes, '\0');
  const std::size_t read =
      file->read(0, std::as_writable_bytes(std::span(text.data(), text.size())));
  if (read != text.size())
    throw DataLoss(path.string() + ": cannot read: ended at byte " + std::to_string(read) + " of " +
                   std::to_string(bytes));
  return text;
}

}  // namespace embertable::checkpoint
