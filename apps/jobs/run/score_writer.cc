#include "apps/jobs/run/score_writer.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string_view>

namespace embertable::jobs {
namespace {

constexpr std::size_t kBytesAtOnce = 1 << 16;

std::string json_text(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

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
    std::visit([&](const auto& value) { text_ += fmt::format("{}", value); }, cell);
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
  file_.write(text_);
  text_.clear();
}

void ScoreWriter::finish() {
  flush();
  file_.commit();
}

}  // namespace embertable::jobs
