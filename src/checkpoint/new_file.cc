#include "checkpoint/new_file.h"

#include <random>
#include <string>
#include <utility>

#include "embertable/errors.h"

namespace embertable::checkpoint {
namespace {

constexpr std::size_t kWrittenAtOnce = 1 << 20;

}  // namespace

std::filesystem::path temporary_path(const std::filesystem::path& path) {
  std::random_device device;
  const std::uint64_t number = std::uint64_t{device()} << 32 | device();
  return path.string() + ".tempstate" + std::to_string(number);
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

NewFile::NewFile(FileSystem& files, std::filesystem::path path)
    : files_(files), path_(std::move(path)), temporary_(temporary_path(path_)) {
  refuse_directory(*files.open_directory(directory_of(path_)), path_);
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
  file_->take_path();
}

void NewFile::commit() {
  sync();
  files_.rename(temporary_, path_);
  file_.reset();
  files_.sync_directory(directory_of(path_));
}

}  // namespace embertable::checkpoint
