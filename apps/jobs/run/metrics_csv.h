#pragma once

#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "apps/jobs/run/train.h"

namespace embertable::jobs {

/// Writes the progress of a run to a CSV file, a row for each epoch, readable while the run goes
/// on:
///   epoch,step,samples,seconds,learning_rate,training_NAME,PART_METRIC,...
/// PART is the part that the run measures, with a column for each metric of the job. If it is the
/// test part, these columns are empty except in a last row, which `finished` adds; they are also
/// empty where there is no measure. A resumed run appends to the rows of the epochs that it keeps,
/// without that last row, in the order of their columns. Throws IoError naming the file; ValueError
/// when such a run starts with other metrics than the file has.
class MetricsCsv final : public TrainObserver {
 public:
  /// The file is created when the run starts.
  explicit MetricsCsv(std::string path) : path_(std::move(path)) {}

  void started(const StartReport& start) override;
  void finished_epoch(const EpochReport& epoch) override;
  void finished(const TrainReport& report) override;

 private:
  void take_order_of(const std::vector<std::string>& columns);
  void write(const std::string& text);
  std::string header(const std::string& training) const;

  std::string path_;
  std::ofstream file_;
  std::string part_;                  ///< the part that is measured
  std::vector<std::string> metrics_;  ///< in the order of the columns
  std::int32_t epochs_ = 0;
  std::int64_t samples_ = 0;
  bool has_header_ = false;
};

}  // namespace embertable::jobs
