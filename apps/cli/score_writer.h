#pragma once

#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "apps/jobs/spec/predictor.h"

namespace embertable::tools {

/// Writes scores as CSV with a header, or as one JSON object per line, to standard output or to a
/// file. A file is written under a name of its own, "<path>.part-<random digits>", and gets its
/// name only once it is complete and on disk. Numbers are the shortest decimals that give the
/// floats back.
class ScoreWriter final : public jobs::ScoreSink {
 public:
  enum class Format { kCsv, kJson };

  /// `path`: "" for standard output. Throws IoError if the file cannot be opened.
  ScoreWriter(std::string path, Format format);
  ~ScoreWriter() override;
  ScoreWriter(const ScoreWriter&) = delete;
  ScoreWriter& operator=(const ScoreWriter&) = delete;

  /// Throw IoError if writing fails, possibly for what was passed in an earlier call.
  void begin(const std::vector<std::string>& columns) override;
  void line(std::span<const jobs::ScoreCell> cells) override;
  void finish();

 private:
  void add_csv(const jobs::ScoreCell& cell);
  void add_json(const jobs::ScoreCell& cell);
  void flush();

  std::string path_;
  std::string written_;  ///< name of the file until it is complete
  Format format_;
  std::FILE* file_;
  std::string text_;                ///< not written yet
  std::vector<std::string> names_;  ///< names of the columns, escaped for JSON
};

}  // namespace embertable::tools
