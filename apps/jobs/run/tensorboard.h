#pragma once

#include <cstdint>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apps/jobs/run/train.h"

namespace embertable::jobs {

/// Scalars in a file that TensorBoard shows, also while it is being written: TFRecords of Event
/// messages. Source: TensorFlow event.proto, summary.proto and record_writer.
class EventFile {
 public:
  /// Creates a new file in the folder, which is created if missing:
  /// "events.out.tfevents.TIME.HOST.PID.NUMBER". Throws IoError naming it.
  explicit EventFile(const std::string& folder);

  const std::string& path() const noexcept { return path_; }

  using Scalar = std::pair<std::string, double>;  ///< tag, value

  /// Writes one event with these scalars. Throws IoError.
  void add(std::int64_t step, const std::vector<Scalar>& scalars);

  /// Voids what other files of the folder say of this step and later ones.
  void restart(std::int64_t step);

 private:
  void write(std::string_view event);
  std::string path_;
  std::ofstream file_;
};

/// Writes the progress of a run to a TensorBoard folder, by step: "training/NAME" (of the epoch's
/// samples so far), "learning_rate", "samples_per_second" and "epoch" a few times a second and
/// after each epoch; "validation/METRIC" after each epoch, "test/METRIC" at the end. A resumed run
/// voids the steps after the one from which it resumes.
class TensorBoard final : public TrainObserver {
 public:
  /// The file is created when the run starts.
  explicit TensorBoard(std::string folder) : folder_(std::move(folder)) {}

  void started(const StartReport& start) override;
  void stepped(const StepReport& step) override;
  void finished_epoch(const EpochReport& epoch) override;
  void finished(const TrainReport& report) override;

 private:
  void add_measures(std::int64_t step, const std::string& part, const Measures& measures);
  std::string folder_;
  std::optional<EventFile> file_;  ///< set once the run has started
  double rate_ = 0;                ///< rate of the last step
  double written_seconds_ = 0;     ///< training time when the last event was written
  std::int64_t written_samples_ = 0;
  bool began_ = false;  ///< there is an earlier point from which to measure the rate
};

}  // namespace embertable::jobs
