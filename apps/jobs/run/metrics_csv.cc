#include "apps/jobs/run/metrics_csv.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>

#include "checkpoint/new_file.h"
#include "embertable/errors.h"

namespace embertable::jobs {
namespace {

namespace fs = std::filesystem;

/// Columns of a row: the epoch, the samples, and the rate, which the row of the test part lacks.
constexpr std::size_t kEpoch = 0, kSamples = 2, kRate = 4;

/// What the first line begins with: the columns before the training measure.
constexpr std::string_view kColumns = "epoch,step,samples,seconds,learning_rate,";

/// The first column with a measure of the measured part.
constexpr std::size_t kFirstMeasure = 6;

/// Returns the number in a column of a row, which has no quotes; empty if there is none.
std::optional<std::int64_t> number_in(std::string_view row, std::size_t column) {
  for (; column > 0; --column) {
    const std::size_t comma = row.find(',');
    if (comma == std::string_view::npos) return {};
    row.remove_prefix(comma + 1);
  }
  std::int64_t number = 0;
  const auto parsed = std::from_chars(row.data(), row.data() + row.size(), number);
  return parsed.ec == std::errc() ? std::optional(number) : std::nullopt;
}

struct KeptRows {
  std::string text;  ///< header and rows
  std::int64_t samples = 0;
};

/// Returns the header and the rows of epochs up to `epochs`, without an incomplete last row and
/// without the row of the test part, which is no longer the last.
KeptRows rows_until(std::ifstream file, std::int32_t epochs) {
  KeptRows kept;
  std::string line;
  while (std::getline(file, line) && !file.eof()) {
    if (kept.text.empty()) {
      kept.text = line + "\n";
      continue;
    }
    const std::optional<std::int64_t> epoch = number_in(line, kEpoch);
    if (!epoch || *epoch > epochs || !number_in(line, kRate)) continue;
    kept.text += line + "\n";
    kept.samples = number_in(line, kSamples).value_or(0);
  }
  return kept;
}

/// Refuses to overwrite a file that no run wrote, such as the job's data. Of a run that goes on,
/// its first line may be broken off.
void refuse_other_file(const std::string& path, bool goes_on) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw IoError(fmt::format("'{}': cannot open", path));
  std::string start(kColumns.size(), ' ');
  file.read(start.data(), static_cast<std::streamsize>(start.size()));
  start.resize(static_cast<std::size_t>(file.gcount()));
  if (start.empty() || start == kColumns || (goes_on && kColumns.starts_with(start))) return;
  throw ValueError(fmt::format(
      "'{}' must be a new file, an empty one or one that a run wrote, got one that does not begin "
      "with \"{}\"",
      path, kColumns));
}

/// Returns the columns with measures that the first line of a text names.
std::vector<std::string> measured_columns(std::string_view text) {
  std::string_view line = text.substr(0, text.find('\n'));
  std::vector<std::string> columns;
  for (std::size_t column = 0;; ++column) {
    const std::size_t comma = line.find(',');
    if (column >= kFirstMeasure) columns.emplace_back(line.substr(0, comma));
    if (comma == std::string_view::npos) return columns;
    line.remove_prefix(comma + 1);
  }
}

std::string values(const Measures& measures, const std::vector<std::string>& metrics) {
  std::string text;
  for (const std::string& metric : metrics) {
    text += ',';
    if (const double value = value_of(measures, metric); !std::isnan(value))
      text += fmt::format("{}", value);
  }
  return text;
}

}  // namespace

void MetricsCsv::started(const StartReport& start) {
  part_ = start.measured_part;
  metrics_ = start.job.metrics;
  std::string kept;
  std::error_code none;
  const bool exists = fs::is_regular_file(path_, none) && !checkpoint::descriptor_named(path_);
  const bool goes_on = start.resumed && exists;
  if (exists) refuse_other_file(path_, goes_on);
  if (start.resumed) epochs_ = start.resumed->epochs;
  if (goes_on) {
    KeptRows rows = rows_until(std::ifstream(path_, std::ios::binary), epochs_);
    kept = std::move(rows.text);
    if (!kept.empty()) take_order_of(measured_columns(kept));
    samples_ = rows.samples;
    checkpoint::NewFile replaced(checkpoint::local_files(), path_);
    replaced.write(checkpoint::bytes_of(kept));
    replaced.commit();
  }
  has_header_ = !kept.empty();
  file_.open(path_, std::ios::binary | (goes_on ? std::ios::app : std::ios::trunc));
  write("");
}

void MetricsCsv::finished_epoch(const EpochReport& epoch) {
  epochs_ = epoch.epoch;
  samples_ = epoch.trained;
  std::string text = has_header_ ? "" : header(epoch.training.name);
  has_header_ = true;
  text += fmt::format("{},{},{},{},{},{}", epoch.epoch, epoch.step, epoch.trained, epoch.seconds,
                      epoch.learning_rate, epoch.training.value);
  write(text + values(epoch.validation, metrics_) + "\n");
}

void MetricsCsv::finished(const TrainReport& report) {
  if (report.measured_part != "test" || !has_header_) return;
  write(fmt::format("{},{},{},,,{}\n", epochs_, report.steps, samples_,
                    values(report.measures, metrics_)));
}

/// Orders the metrics as the columns of a file that goes on. Throws ValueError unless they are the
/// same.
void MetricsCsv::take_order_of(const std::vector<std::string>& columns) {
  std::vector<std::string> mine;
  for (const std::string& metric : metrics_) mine.push_back(part_ + "_" + metric);
  if (!std::is_permutation(columns.begin(), columns.end(), mine.begin(), mine.end()))
    throw ValueError(
        fmt::format("'{}': the columns of a file that goes on must be those of the job's metrics, "
                    "{}, got {}; take these metrics, or another file",
                    path_, fmt::join(mine, ", "), fmt::join(columns, ", ")));
  for (std::size_t i = 0; i < columns.size(); ++i)
    metrics_[i] = columns[i].substr(part_.size() + 1);
}

void MetricsCsv::write(const std::string& text) {
  file_ << text << std::flush;
  if (!file_) throw IoError(fmt::format("'{}': cannot write: {}", path_, std::strerror(errno)));
}

std::string MetricsCsv::header(const std::string& training) const {
  std::string text = fmt::format("{}training_{}", kColumns, training);
  for (const std::string& metric : metrics_) text += "," + part_ + "_" + metric;
  return text + "\n";
}

}  // namespace embertable::jobs
