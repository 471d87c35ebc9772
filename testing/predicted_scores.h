#pragma once

// For tests: the scores that a saved run gives for new lines.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "apps/jobs/run/evaluate.h"
#include "apps/jobs/run/predict.h"
#include "embertable/errors.h"
#include "testing/temporary_files.h"
#include "testing/training_run.h"

namespace embertable::jobs {

/// Lines as texts, numbers so that they can be read back.
struct Scores : ScoreSink {
  void begin(const std::vector<ScoreColumn>& of) override {
    for (const ScoreColumn& column : of) columns.push_back(column.name);
  }
  void line(std::span<const ScoreCell> cells) override {
    std::vector<std::string>& texts = lines.emplace_back();
    for (const ScoreCell& cell : cells)
      texts.push_back(std::visit([](const auto& value) { return fmt::format("{}", value); }, cell));
  }

  std::vector<float> numbers(const std::string& column) const {
    const auto at = std::find(columns.begin(), columns.end(), column) - columns.begin();
    std::vector<float> values;
    for (const std::vector<std::string>& line : lines) values.push_back(std::stof(line.at(at)));
    return values;
  }

  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> lines;
};

class Predict : public testing::Test {
 protected:
  TrainReport run(const Job& job) { return train_in(files_, job, {.out = files_.path("out")}); }
  Measures measured() {
    return evaluate(files_.path("out"), {.data_root = files_.path(), .threads = 1}).measures;
  }

  Prediction predicted(const std::string& file, Scores& scores, NewRows rows = {},
                       std::int32_t threads = 1) {
    rows.path = files_.path(file);
    return predict(files_.path("out"), {.rows = rows, .threads = threads}, scores);
  }
  Scores scores(const std::string& file, const NewRows& rows = {}, std::int32_t threads = 1) {
    Scores found;
    predicted(file, found, rows, threads);
    return found;
  }
  template <class Error>
  std::string refused(const std::string& file, const NewRows& rows = {}) {
    return refusal<Error>(files_.path(), [&] { scores(file, rows); });
  }

  TemporaryFiles files_;
};

}  // namespace embertable::jobs
