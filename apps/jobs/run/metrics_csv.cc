#include "apps/jobs/run/metrics_csv.h"

#include <fmt/format.h>

#include <cerrno>
#include <charconv>
#include <cstring>

#include "embertable/errors.h"

namespace embertable::jobs {
namespace {

/// Returns the header and the rows of epochs up to `epochs`, without an incomplete last row.
std::string rows_until(std::ifstream file, std::int32_t epochs) {
  std::string kept, line;
  while (std::getline(file, line) && !file.eof()) {
    std::int32_t epoch = 0;
    const auto parsed = std::from_chars(line.data(), line.data() + line.size(), epoch);
    if (kept.empty() || (parsed.ec == std::errc() && epoch <= epochs)) kept += line + "\n";
  }
  return kept;
}

std::string values(const Measures& measures, const std::vector<std::string>& metrics) {
  std::string text;
  for (const std::string& metric : metrics) {
    text += ',';
    if (!measures.empty()) text += fmt::format("{}", value_of(measures, metric));
  }
  return text;
}

}  // namespace

void MetricsCsv::started(const StartReport& start) {
  part_ = start.measured_part;
  metrics_ = start.job.metrics;
  std::string kept;
  if (start.resumed) {
    epochs_ = start.resumed->epochs;
    kept = rows_until(std::ifstream(path_, std::ios::binary), epochs_);
  }
  has_header_ = !kept.empty();
  file_.open(path_, std::ios::binary | std::ios::trunc);
  write(kept);
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

void MetricsCsv::write(const std::string& text) {
  file_ << text << std::flush;
  if (!file_) throw IoError(fmt::format("'{}': cannot write: {}", path_, std::strerror(errno)));
}

std::string MetricsCsv::header(const std::string& training) const {
  std::string text = "epoch,step,samples,seconds,learning_rate,training_" + training;
  for (const std::string& metric : metrics_) text += "," + part_ + "_" + metric;
  return text + "\n";
}

}  // namespace embertable::jobs
