#include "apps/jobs/run/tensorboard.h"

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <protozero/pbf_writer.hpp>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "embertable/errors.h"

namespace embertable::jobs {
namespace {

constexpr double kSecondsPerEvent = 0.25;

// Field numbers of event.proto and summary.proto.
enum EventField : protozero::pbf_tag_type {
  kWallTime = 1,
  kStep = 2,
  kFileVersion = 3,
  kSummary = 5,
  kSessionLog = 7
};
constexpr protozero::pbf_tag_type kSummaryValue = 1, kValueTag = 1, kValueSimple = 2;
constexpr protozero::pbf_tag_type kSessionStatus = 1;
constexpr std::int32_t kSessionStart = 1;

double now() {
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration<double>(since).count();
}

std::string file_name() {
  static std::atomic<int> number = 0;
  char host[256] = "host";
  gethostname(host, sizeof host - 1);
  return fmt::format("events.out.tfevents.{:010}.{}.{}.{}", static_cast<std::int64_t>(now()), host,
                     getpid(), number++);
}

}  // namespace

EventFile::EventFile(const std::string& folder) {
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (failed)
    throw IoError(fmt::format("'{}': cannot make the directory: {}", folder, failed.message()));
  path_ = (std::filesystem::path(folder) / file_name()).string();
  file_.open(path_, std::ios::binary);
  std::string event;
  protozero::pbf_writer writer(event);
  writer.add_double(kWallTime, now());
  writer.add_string(kFileVersion, "brain.Event:2");
  write(event);
}

void EventFile::add(std::int64_t step, const std::vector<Scalar>& scalars) {
  std::string event;
  protozero::pbf_writer writer(event);
  writer.add_double(kWallTime, now());
  writer.add_int64(kStep, step);
  {
    protozero::pbf_writer summary(writer, kSummary);
    for (const auto& [tag, value] : scalars) {
      protozero::pbf_writer one(summary, kSummaryValue);
      one.add_string(kValueTag, tag);
      one.add_float(kValueSimple, static_cast<float>(value));
    }
  }
  write(event);
}

void EventFile::restart(std::int64_t step) {
  std::string event;
  protozero::pbf_writer writer(event);
  writer.add_double(kWallTime, now());
  writer.add_int64(kStep, step);
  {
    protozero::pbf_writer log(writer, kSessionLog);
    log.add_enum(kSessionStatus, kSessionStart);
  }
  write(event);
}

/// Writes a TFRecord: length, its checksum, the bytes, their checksum.
void EventFile::write(std::string_view event) {
  std::string record;
  append_little_endian(std::uint64_t{event.size()}, record);
  append_little_endian(masked_crc32c(crc32c(record)), record);
  record += event;
  append_little_endian(masked_crc32c(crc32c(event)), record);
  file_ << record << std::flush;
  if (!file_) throw IoError(fmt::format("'{}': cannot write: {}", path_, std::strerror(errno)));
}

void TensorBoard::started(const StartReport& start) {
  file_.emplace(folder_);
  if (start.resumed) file_->restart(start.resumed->step + 1);
}

void TensorBoard::stepped(const StepReport& step) {
  rate_ = step.learning_rate;
  if (!began_) {
    began_ = true;
    written_seconds_ = step.seconds;
    written_samples_ = step.trained;
    return;
  }
  const double seconds = step.seconds - written_seconds_;
  if (seconds < kSecondsPerEvent) return;
  const auto samples = static_cast<double>(step.trained - written_samples_);
  file_->add(step.step, {{"training/" + step.training.name, step.training.value},
                         {"learning_rate", step.learning_rate},
                         {"samples_per_second", samples / seconds},
                         {"epoch", step.epoch}});
  written_seconds_ = step.seconds;
  written_samples_ = step.trained;
}

void TensorBoard::finished_epoch(const EpochReport& epoch) {
  file_->add(epoch.step, {{"training/" + epoch.training.name, epoch.training.value},
                          {"learning_rate", rate_},
                          {"samples_per_second", epoch.samples_per_second},
                          {"epoch", epoch.epoch}});
  add_measures(epoch.step, "validation", epoch.validation);
}

void TensorBoard::finished(const TrainReport& report) {
  if (file_ && report.measured_part == "test")
    add_measures(report.steps, report.measured_part, report.measures);
}

void TensorBoard::add_measures(std::int64_t step, const std::string& part,
                               const Measures& measures) {
  if (measures.empty()) return;
  std::vector<EventFile::Scalar> scalars;
  for (const Measure& measure : measures) {
    if (std::isnan(measure.value)) continue;  // the part has no samples
    scalars.emplace_back(part + "/" + measure.name, measure.value);
  }
  if (!scalars.empty()) file_->add(step, scalars);
}

}  // namespace embertable::jobs
