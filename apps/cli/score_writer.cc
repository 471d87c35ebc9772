#include "apps/cli/score_writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <iterator>
#include <nlohmann/json.hpp>
#include <random>
#include <string_view>
#include <utility>

#include "embertable/errors.h"

namespace embertable::tools {
namespace {

constexpr std::size_t kBytesAtOnce = 1 << 16;

std::string json_text(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

/// Returns the temporary path of a regular file, which no other run has; pipes, terminals and
/// devices are written directly.
std::string written_path(const std::string& path) {
  const bool own = !std::filesystem::exists(path) || std::filesystem::is_regular_file(path);
  return own ? fmt::format("{}.part-{:08x}", path, std::random_device()()) : path;
}

/// Opens a new file, never one that is there or that a link leads to, or what is no regular file.
std::FILE* opened(const std::string& path, bool is_new) {
  const int flags = is_new ? O_CREAT | O_EXCL | O_NOFOLLOW : O_TRUNC;
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CLOEXEC | flags, 0666);
  if (descriptor < 0)
    throw IoError(fmt::format("'{}': cannot open: {}", path, std::strerror(errno)));
  std::FILE* const file = ::fdopen(descriptor, "wb");
  if (file != nullptr) return file;
  const int cause = errno;
  ::close(descriptor);
  throw IoError(fmt::format("'{}': cannot open: {}", path, std::strerror(cause)));
}

}  // namespace

ScoreWriter::ScoreWriter(std::string path, Format format)
    : path_(std::move(path)),
      written_(path_.empty() ? "" : written_path(path_)),
      format_(format),
      file_(path_.empty() ? stdout : opened(written_, written_ != path_)) {}

ScoreWriter::~ScoreWriter() {
  if (path_.empty() || file_ == nullptr) return;
  std::fclose(file_);
  if (written_ != path_) std::remove(written_.c_str());
}

void ScoreWriter::begin(const std::vector<std::string>& columns) {
  for (const std::string& column : columns) {
    names_.push_back(json_text(column));
    if (format_ == Format::kCsv) {
      if (names_.size() > 1) text_ += ',';
      add_csv(column);
    }
  }
  if (format_ == Format::kCsv) text_ += '\n';
}

void ScoreWriter::line(std::span<const jobs::ScoreCell> cells) {
  const bool json = format_ == Format::kJson;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (json) {
      text_ += i == 0 ? "{" : ", ";
      text_ += names_[i] + ": ";
      add_json(cells[i]);
    } else {
      if (i > 0) text_ += ',';
      add_csv(cells[i]);
    }
  }
  text_ += json ? "}\n" : "\n";
  if (text_.size() >= kBytesAtOnce) flush();
}

void ScoreWriter::add_csv(const jobs::ScoreCell& cell) {
  const auto* const text = std::get_if<std::string_view>(&cell);
  if (text == nullptr) {
    std::visit([&](const auto& value) { fmt::format_to(std::back_inserter(text_), "{}", value); },
               cell);
  } else if (text->find_first_of(",\"\r\n") == std::string_view::npos) {
    text_ += *text;
  } else {
    text_ += '"';
    for (const char c : *text) text_ += c == '"' ? std::string("\"\"") : std::string(1, c);
    text_ += '"';
  }
}

/// Quotes infinities and NaN, because JSON numbers are finite.
void ScoreWriter::add_json(const jobs::ScoreCell& cell) {
  if (const auto* const text = std::get_if<std::string_view>(&cell)) {
    text_ += json_text(*text);
    return;
  }
  const auto* const real = std::get_if<float>(&cell);
  const char* const quote = real != nullptr && !std::isfinite(*real) ? "\"" : "";
  text_ += quote;
  add_csv(cell);
  text_ += quote;
}

void ScoreWriter::flush() {
  const bool good = std::fwrite(text_.data(), 1, text_.size(), file_) == text_.size();
  text_.clear();
  if (!good || std::fflush(file_) != 0) {
    throw IoError(fmt::format("'{}': cannot write: {}",
                              path_.empty() ? "standard output" : written_, std::strerror(errno)));
  }
}

void ScoreWriter::finish() {
  flush();
  if (path_.empty()) return;
  const bool own = written_ != path_;
  const bool synced = !own || ::fsync(::fileno(file_)) == 0;
  const bool closed = std::fclose(std::exchange(file_, nullptr)) == 0;
  if (synced && closed && (!own || std::rename(written_.c_str(), path_.c_str()) == 0)) return;
  const int cause = errno;
  if (own) std::remove(written_.c_str());
  throw IoError(fmt::format("'{}': cannot write: {}", path_, std::strerror(cause)));
}

}  // namespace embertable::tools
