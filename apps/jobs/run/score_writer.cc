#include "apps/jobs/run/score_writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "embertable/errors.h"

namespace embertable::jobs {
namespace {

constexpr std::size_t kBytesAtOnce = 1 << 16;

std::string json_text(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

/// Opens what is there and is no regular file, or a descriptor of this process.
std::FILE* opened(const std::string& path, std::optional<int> descriptor) {
  const int own = descriptor ? ::fcntl(*descriptor, F_DUPFD_CLOEXEC, 0)
                             : ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  std::FILE* const file = own < 0 ? nullptr : ::fdopen(own, "wb");
  if (file != nullptr) return file;
  const int cause = errno;
  if (own >= 0) ::close(own);
  throw IoError(fmt::format("'{}': cannot open: {}", path, std::strerror(cause)));
}

}  // namespace

bool ScoreWriter::is_standard_output(const std::string& path) {
  return path.empty() || checkpoint::descriptor_named(path) == STDOUT_FILENO;
}

ScoreWriter::ScoreWriter(std::string path, Format format)
    : path_(std::move(path)), format_(format) {
  const std::optional<int> descriptor = checkpoint::descriptor_named(path_);
  if (is_standard_output(path_)) {
    path_.clear();
    file_ = stdout;
  } else if (descriptor ||
             (std::filesystem::exists(path_) && !std::filesystem::is_regular_file(path_))) {
    file_ = opened(path_, descriptor);
  } else {
    new_file_.emplace(checkpoint::local_files(), path_);
  }
}

ScoreWriter::~ScoreWriter() {
  if (file_ != nullptr && file_ != stdout) std::fclose(file_);
}

void ScoreWriter::begin(const std::vector<ScoreColumn>& columns) {
  for (const ScoreColumn& column : columns) {
    names_.push_back(json_text(column.name));
    if (format_ == Format::kCsv) {
      if (names_.size() > 1) text_ += ',';
      add_csv(column.name);
    }
  }
  if (format_ == Format::kCsv) text_ += '\n';
}

void ScoreWriter::line(std::span<const ScoreCell> cells) {
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

void ScoreWriter::add_csv(const ScoreCell& cell) {
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
void ScoreWriter::add_json(const ScoreCell& cell) {
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
  if (new_file_) {
    new_file_->write(checkpoint::bytes_of(text_));
  } else if (std::fwrite(text_.data(), 1, text_.size(), file_) != text_.size() ||
             std::fflush(file_) != 0) {
    fail();
  }
  text_.clear();
}

void ScoreWriter::finish() {
  flush();
  if (new_file_) return new_file_->commit();
  if (file_ != stdout && std::fclose(std::exchange(file_, nullptr)) != 0) fail();
}

void ScoreWriter::fail() const {
  throw IoError(fmt::format("'{}': cannot write: {}", path_.empty() ? "standard output" : path_,
                            std::strerror(errno)));
}

}  // namespace embertable::jobs
