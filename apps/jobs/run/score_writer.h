#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "apps/convert/result_file.h"
#include "apps/jobs/spec/predictor.h"

namespace embertable::jobs {

/// Writes scores as CSV with a header, or as one JSON object per line, to a ResultFile. Numbers are
/// the shortest decimals that give the floats back.
class ScoreWriter final : public ScoreSink {
 public:
  enum class Format { kCsv, kJson };

  /// `path`: "" for standard output. Throws IoError if the file cannot be opened.
  ScoreWriter(std::string path, Format format) : file_(std::move(path)), format_(format) {}

  /// Throw IoError if writing fails, possibly for what was passed in an earlier call.
  void begin(const std::vector<ScoreColumn>& columns) override;
  void line(std::span<const ScoreCell> cells) override;
  void finish();

 private:
  void add_csv(const ScoreCell& cell);
  void add_json(const ScoreCell& cell);
  void flush();

  ResultFile file_;
  Format format_;
  std::string text_;                ///< not written yet
  std::vector<std::string> names_;  ///< names of the columns, escaped for JSON
};

}  // namespace embertable::jobs
