#include "checkpoint/file.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <vector>

#include "embertable/errors.h"

namespace embertable::checkpoint {
namespace {

namespace fs = std::filesystem;

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

}  // namespace

bool FileMap::fetch(std::int64_t, std::int64_t) const noexcept { return true; }

std::unique_ptr<FileMap> File::map() const { return std::make_unique<CopiedMap>(*this); }

void make_directories(FileSystem& files, const fs::path& path) {
  if (path.empty()) return;
  if (const auto found = files.stat(path)) {
    if (!found->directory)
      throw IoError(path.string() +
                    ": cannot make directory: " + std::generic_category().message(ENOTDIR));
    return;
  }
  make_directories(files, path.parent_path());
  if (!path.has_filename()) return;  // "a/b/" after "a/b"
  try {
    files.make_directory(path);
  } catch (const IoError&) {
    const auto found = files.stat(path);
    if (!found || !found->directory) throw;
  }
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

// Recurses once for each level of directories, with a descriptor for each: the limit of open files
// ends the recursion long before the stack does.
void remove_all(Directory& directory, const std::string& name) {
  if (const std::unique_ptr<Directory> inner = directory.open(name))
    for (const std::string& held : inner->list()) remove_all(*inner, held);
  directory.remove(name);
}

std::string read_file(FileSystem& files, const fs::path& path, std::int64_t limit) {
  return read_file(*files.open(path), path, limit);
}

std::string read_file(const File& file, const fs::path& path, std::int64_t limit) {
  const std::int64_t bytes = file.size();
  if (bytes > limit)
    throw DataLoss(path.string() + ": cannot read: " + std::to_string(bytes) + " bytes, at most " +
                   std::to_string(limit) + " are read");
  std::string text(bytes, '\0');
  const std::size_t read =
      file.read(0, std::as_writable_bytes(std::span(text.data(), text.size())));
  if (read != text.size())
    throw DataLoss(path.string() + ": cannot read: ended at byte " + std::to_string(read) + " of " +
                   std::to_string(bytes));
  return text;
}

std::size_t most_open_files() noexcept {
  constexpr rlim_t kMost = 256;
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return kMost;
  return static_cast<std::size_t>(std::min(limit.rlim_cur / 4, kMost));
}

}  // namespace embertable::checkpoint
