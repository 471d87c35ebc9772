#include "apps/jobs/run/tensorboard.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>

#include "base/crc32c.h"
#include "embertable/errors.h"
#include "testing/temporary_files.h"

namespace embertable::jobs {
namespace {

/// The number that begins at text[at], least byte first.
std::uint64_t number_at(std::string_view text, std::size_t at, std::size_t bytes) {
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < bytes; ++i)
    number |= std::uint64_t{static_cast<std::uint8_t>(text.at(at + i))} << (8 * i);
  return number;
}

std::uint32_t masked_sum(std::string_view text) {
  const std::uint32_t sum = crc32c(text);
  return ((sum >> 15) | (sum << 17)) + 0xa282ead8u;
}

/// The payloads of a TFRecord file; a wrong sum fails the test.
std::vector<std::string> written_records(const std::string& bytes) {
  std::vector<std::string> found;
  std::size_t at = 0;
  while (at < bytes.size()) {
    const auto length = static_cast<std::size_t>(number_at(bytes, at, 8));
    EXPECT_EQ(number_at(bytes, at + 8, 4), masked_sum(bytes.substr(at, 8)));
    found.push_back(bytes.substr(at + 12, length));
    EXPECT_EQ(number_at(bytes, at + 12 + length, 4), masked_sum(found.back()));
    at += 16 + length;
  }
  return found;
}

/// Calls field(number, wire type, varint or fixed value, bytes) for each field of a message.
template <class Field>
void for_each_field(std::string_view message, const Field& field) {
  std::size_t at = 0;
  const auto varint = [&] {
    std::uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      const auto byte = static_cast<std::uint8_t>(message.at(at++));
      value |= std::uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) return value;
    }
  };
  while (at < message.size()) {
    const std::uint64_t tag = varint();
    const std::uint64_t type = tag & 7;
    std::uint64_t value = 0;
    std::string_view bytes;
    if (type == 0) {
      value = varint();
    } else if (type == 2) {
      const auto size = static_cast<std::size_t>(varint());
      bytes = message.substr(at, size);
      at += size;
    } else {
      const std::size_t size = type == 1 ? 8 : 4;
      value = number_at(message, at, size);
      at += size;
    }
    field(static_cast<int>(tag >> 3), static_cast<int>(type), value, bytes);
  }
}

struct Event {
  double wall_time = 0;
  std::int64_t step = 0;
  std::string version;
  std::map<std::string, float> scalars;
  int status = 0;  ///< status of a session log
};

Event parse(const std::string& record) {
  Event event;
  for_each_field(record, [&](int number, int type, std::uint64_t value, std::string_view bytes) {
    if (number == 1 && type == 1) event.wall_time = std::bit_cast<double>(value);
    if (number == 2 && type == 0) event.step = static_cast<std::int64_t>(value);
    if (number == 3 && type == 2) event.version = bytes;
    if (number == 5) {
      for_each_field(bytes, [&](int, int, std::uint64_t, std::string_view one) {
        std::string tag;
        for_each_field(one, [&](int part, int, std::uint64_t simple, std::string_view text) {
          if (part == 1) tag = text;
          if (part == 2)
            event.scalars[tag] = std::bit_cast<float>(static_cast<std::uint32_t>(simple));
        });
      });
    }
    if (number == 7) {
      for_each_field(bytes, [&](int, int, std::uint64_t status, std::string_view) {
        event.status = static_cast<int>(status);
      });
    }
  });
  return event;
}

std::vector<Event> written_events(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  std::vector<Event> found;
  for (const std::string& record : written_records(bytes)) found.push_back(parse(record));
  return found;
}

std::string only_file(const std::string& folder) {
  std::string path;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    EXPECT_EQ(path, "");
    path = entry.path().string();
  }
  return path;
}

using Scalars = std::map<std::string, float>;

TEST(EventFile, HoldsWhatTensorBoardReads) {
  const TemporaryFiles files;
  EventFile file(files.path("logs/a"));
  EXPECT_NE(file.path().find("/logs/a/events.out.tfevents."), std::string::npos);
  EXPECT_EQ(written_events(file.path()).size(), 1u);
  file.add(7, {{"training/loss", 2.5}, {"learning_rate", 0.125}});
  const std::vector<Event> found = written_events(file.path());  // while the file is open
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].version, "brain.Event:2");
  EXPECT_GT(found[0].wall_time, 1.7e9);
  EXPECT_EQ(found[1].step, 7);
  EXPECT_EQ(found[1].scalars, (Scalars{{"training/loss", 2.5f}, {"learning_rate", 0.125f}}));
}

TEST(EventFile, FilesOfOneFolderHaveNamesOfTheirOwn) {
  const TemporaryFiles files;
  EXPECT_NE(EventFile(files.path("logs")).path(), EventFile(files.path("logs")).path());
}

TEST(EventFile, NamesTheFolderThatItCannotMake) {
  const TemporaryFiles files;
  files.write("logs", "a file");
  for (const char* folder : {"logs", "logs/a"})
    EXPECT_EQ(refusal<IoError>(files.path(), [&] { EventFile file(files.path(folder)); }),
              fmt::format("'{}': cannot make the directory: Not a directory", folder));
}

StartReport started(const Job& job) {
  return {.job = job,
          .threads = 1,
          .training = 10,
          .measured = 5,
          .measured_part = "test",
          .ids = {},
          .baselines = {},
          .read_seconds = 0,
          .resumed = {}};
}

void step(TensorBoard& board, std::int64_t number, double seconds) {
  const Measure training = {"loss", 3.0};
  const StepStatistics statistics;
  board.stepped({.epoch = 1,
                 .step = number,
                 .share = 0,
                 .trained = 100 * number,
                 .learning_rate = 0.5,
                 .training = training,
                 .seconds = seconds,
                 .engine = statistics});
}

TEST(TensorBoard, WritesStepsNowAndThenEpochsAndTheEnd) {
  const TemporaryFiles files;
  const Job job;
  TensorBoard board(files.path("logs"));
  board.started(started(job));
  step(board, 1, 0.5);  // the first is where the rate is measured from
  step(board, 2, 0.6);
  step(board, 3, 1.0);
  board.finished_epoch({.epoch = 1,
                        .step = 4,
                        .trained = 400,
                        .learning_rate = 0.75,
                        .training = {"loss", 2.0},
                        .validation = {{"auc", 0.75}},
                        .seconds = 1,
                        .samples_per_second = 400});
  board.finished({.measures = {{"auc", 0.875}}, .measured_part = "test", .steps = 4});
  const std::vector<Event> found = written_events(only_file(files.path("logs")));
  ASSERT_EQ(found.size(), 5u);
  EXPECT_EQ(found[1].step, 3);
  EXPECT_EQ(found[1].scalars, (Scalars{{"training/loss", 3.f},
                                       {"learning_rate", 0.5f},
                                       {"samples_per_second", 400.f},
                                       {"epoch", 1.f}}));
  EXPECT_EQ(found[2].step, 4);
  EXPECT_EQ(found[2].scalars.at("training/loss"), 2.f);
  EXPECT_EQ(found[2].scalars.at("learning_rate"), 0.5f);
  EXPECT_EQ(found[3].scalars, (Scalars{{"validation/auc", 0.75f}}));
  EXPECT_EQ(found[4].scalars, (Scalars{{"test/auc", 0.875f}}));
  EXPECT_EQ(found[4].step, 4);
}

TEST(TensorBoard, AResumedRunVoidsTheStepsBehindIt) {
  const TemporaryFiles files;
  const Job job;
  TensorBoard board(files.path("logs"));
  StartReport start = started(job);
  start.resumed = {"run", 41, 1, 0, {}};
  board.started(start);
  const std::vector<Event> found = written_events(only_file(files.path("logs")));
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[1].step, 42);
  EXPECT_EQ(found[1].status, 1);
}

}  // namespace
}  // namespace embertable::jobs
