#include "apps/convert/result_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "embertable/errors.h"

namespace embertable::jobs {
namespace {

/// True for what is there and is no regular file.
bool is_special(const std::string& path) {
  std::error_code none;
  const std::filesystem::file_status found = std::filesystem::status(path, none);
  return std::filesystem::exists(found) && !std::filesystem::is_regular_file(found);
}

std::FILE* opened(const std::string& path, std::optional<int> descriptor) {
  const int own = descriptor ? ::fcntl(*descriptor, F_DUPFD_CLOEXEC, 0)
                             : ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  std::FILE* const stream = own < 0 ? nullptr : ::fdopen(own, "wb");
  if (stream != nullptr) return stream;
  const int cause = errno;
  if (own >= 0) ::close(own);
  throw IoError(fmt::format("'{}': cannot open: {}", path, std::strerror(cause)));
}

}  // namespace

bool ResultFile::is_standard_output(const std::string& path) {
  return path.empty() || checkpoint::descriptor_named(path) == STDOUT_FILENO;
}

ResultFile::ResultFile(std::string path) : path_(std::move(path)) {
  const std::optional<int> descriptor = checkpoint::descriptor_named(path_);
  if (is_standard_output(path_)) {
    path_.clear();
    stream_ = stdout;  // in order with what else is printed
  } else if (descriptor || is_special(path_)) {
    stream_ = opened(path_, descriptor);
  } else {
    new_file_.emplace(checkpoint::local_files(), path_);
  }
}

ResultFile::~ResultFile() {
  if (stream_ != nullptr && stream_ != stdout) std::fclose(stream_);
}

void ResultFile::write(std::string_view text) {
  if (new_file_) return new_file_->write(checkpoint::bytes_of(text));
  if (std::fwrite(text.data(), 1, text.size(), stream_) != text.size() || std::fflush(stream_) != 0)
    fail();
}

void ResultFile::commit() {
  if (new_file_) return new_file_->commit();
  if (stream_ != stdout && std::fclose(std::exchange(stream_, nullptr)) != 0) fail();
}

void ResultFile::fail() const {
  throw IoError(fmt::format("'{}': cannot write: {}", path_.empty() ? "standard output" : path_,
                            std::strerror(errno)));
}

LateName::LateName(std::filesystem::path path)
    : path_(std::move(path)), temporary_(checkpoint::temporary_path(path_)) {
  if (is_special(path_.string()))
    throw IoError(fmt::format("'{}': cannot write: it is no regular file", path_.string()));
}

LateName::~LateName() { checkpoint::try_remove(checkpoint::local_files(), temporary_); }

void LateName::commit() { checkpoint::local_files().rename(temporary_, path_); }

void write_result(const std::string& path, std::string_view text) {
  ResultFile file(path);
  file.write(text);
  file.commit();
}

}  // namespace embertable::jobs
