#pragma once

#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "apps/jobs/spec/predictor.h"
#include "checkpoint/new_file.h"

namespace embertable::jobs {

/// Writes scores as CSV with a header, or as one JSON object per line, to standard output or to a
/// file. A file gets its name only once it is complete and on disk; pipes, terminals and devices
/// are written directly. Numbers are the shortest decimals that give the floats back.
class ScoreWriter final : public ScoreSink {
 public:
  enum class Format { kCsv, kJson };

  /// True if a path is "" or names standard output, as /dev/stdout does.
  static bool is_standard_output(const std::string& path);

  /// `path`: "" for standard output. Throws IoError if the file cannot be opened.
  ScoreWriter(std::string path, Format format);
  ~ScoreWriter() override;
  ScoreWriter(const ScoreWriter&) = delete;
  ScoreWriter& operator=(const ScoreWriter&) = delete;

  /// Throw IoError if writing fails, possibly for what was passed in an earlier call.
  void begin(const std::vector<ScoreColumn>& columns) override;
  void line(std::span<const ScoreCell> cells) override;
  void finish();

 private:
  void add_csv(const ScoreCell& cell);
  void add_json(const ScoreCell& cell);
  void flush();
  [[noreturn]] void fail() const;

  std::string path_;
  std::optional<checkpoint::NewFile> new_file_;
  std::FILE* file_ = nullptr;  ///< null: new_file_ is written
  Format format_;
  std::string text_;                ///< not written yet
  std::vector<std::string> names_;  ///< names of the columns, escaped for JSON
};

}  // namespace embertable::jobs
