#include "checkpoint/new_file.h"

#include <charconv>
#include <climits>
#include <cstdio>
#include <random>
#include <string>
#include <system_error>
#include <utility>

#include "embertable/errors.h"

namespace embertable::checkpoint {
namespace {

constexpr std::size_t kWrittenAtOnce = 1 << 20;

std::filesystem::path made_absolute(const std::filesystem::path& path) {
  std::error_code failed;
  const std::filesystem::path found = std::filesystem::absolute(path, failed);
  return failed ? path : found;
}

}  // namespace

std::optional<int> descriptor_named(const std::filesystem::path& path) {
  constexpr int kMostLinks = 40;  // Linux follows as many
  std::error_code failed;
  const std::filesystem::path own = std::filesystem::canonical("/proc/self/fd", failed);
  if (failed) return std::nullopt;
  std::filesystem::path at = std::filesystem::absolute(path, failed);
  for (int links = 0; links < kMostLinks && !failed; ++links) {
    const std::filesystem::path parent = std::filesystem::canonical(at.parent_path(), failed);
    if (failed) break;
    const std::string name = at.filename().string();
    int descriptor = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), descriptor);
    if (parent == own && error == std::errc() && end == name.data() + name.size())
      return descriptor;
    const std::filesystem::path target = std::filesystem::read_symlink(at, failed);
    at = parent / target;
  }
  return std::nullopt;
}

std::filesystem::path temporary_path(const std::filesystem::path& path) {
  std::random_device device;
  char suffix[27];
  std::snprintf(suffix, sizeof suffix, ".tempstate%08x%08x", device(), device());
  const std::string name = path.filename().string().substr(0, NAME_MAX + 1 - sizeof suffix);
  return path.parent_path() / (name + suffix);
}

void try_remove(FileSystem& files, const std::filesystem::path& path) noexcept {
  try {
    files.remove(path);
  } catch (...) {  // it does no harm
  }
}

void refuse_directory(Directory& opened, const std::filesystem::path& path) {
  if (opened.open(path.filename()))
    throw IoError(path.string() + ": cannot replace: it is a directory");
}

void flush_new_name(const std::filesystem::path& path, std::string_view state,
                    FunctionRef<void()> flush) {
  try {
    flush();
  } catch (const IoError& error) {
    throw IoError(path.string() + ": " + std::string(state) +
                  ", but a power loss may undo that: " + error.what());
  }
}

NewFile::NewFile(FileSystem& files, const std::filesystem::path& path)
    : files_(files), path_(made_absolute(path)), temporary_(temporary_path(path_)) {
  refuse_directory(*files.open_directory(directory_of(path_)), path_);
  const std::optional<FileSystem::Entry> found = files.stat(path_);
  if ((found && found->special) || descriptor_named(path_))
    throw IoError(path_.string() + ": cannot replace: it is no regular file");
  file_ = files.create_unnamed(temporary_);
}

NewFile::~NewFile() {
  if (!file_) return;
  file_.reset();
  try_remove(files_, temporary_);
}

void NewFile::write(std::span<const std::byte> bytes) {
  size_ += std::ssize(bytes);
  if (gathered_.size() + bytes.size() > kWrittenAtOnce) flush();
  if (bytes.size() > kWrittenAtOnce) return file_->write(bytes);
  if (!bytes.empty()) gathered_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

void NewFile::flush() {
  if (!gathered_.empty()) file_->write(bytes_of(std::exchange(gathered_, {})));
}

void NewFile::sync() {
  flush();
  file_->sync();
}

void NewFile::commit() {
  sync();
  take_temporary_name();
  files_.rename(temporary_, path_);
  file_.reset();
  flush_new_name(path_, "has the new contents",
                 [&] { files_.sync_directory(directory_of(path_)); });
}

}  // namespace embertable::checkpoint
