#pragma once

#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>

#include "apps/cli/progress_line.h"
#include "apps/jobs/run/remarks.h"
#include "apps/jobs/run/train.h"

namespace embertable::tools {

/// How a run was interrupted.
struct Interruption {
  std::string signal;  ///< "SIGINT"
  std::string resume;  ///< command line that resumes the run, "" without a directory
};

/// Reports a run as text: a moving bar on a terminal, a line for each epoch elsewhere.
class TextReport : public jobs::TrainObserver {
 public:
  TextReport(const jobs::Job& job, const jobs::TrainOptions& options);
  void started(const jobs::StartReport& start) override;
  void stepped(const jobs::StepReport& step) override;
  void finished_epoch(const jobs::EpochReport& epoch) override;
  void saving(std::int64_t step) override;
  void saved(const jobs::SaveReport& report) override;
  void finished(const jobs::TrainReport& report) override;
  void interrupted(const jobs::TrainReport& report, const Interruption& how);

 private:
  static void print_left_out(const jobs::LeftOut& left_out);
  void print_origin(const jobs::StartReport& start) const;
  void print_measures(const std::string& name, const jobs::Measures& measures) const;
  void print_next();

  const jobs::Job& job_;
  const jobs::TrainOptions& options_;
  const bool terminal_;
  jobs::Remarks remarks_;
  std::map<std::string, std::string> first_keys_;  ///< by name of ids
  double next_bar_ = 0;                            ///< seconds of training after which it is drawn
  std::optional<ProgressLine> save_;               ///< while a save is under way
};

/// Reports a run as JSON objects: each goes to `tell` as a text without line breaks, or is printed
/// as a line.
class JsonReport : public jobs::TrainObserver {
 public:
  using Tell = std::function<void(const std::string& event)>;
  JsonReport(const jobs::Job& job, const jobs::TrainOptions&, Tell tell = {})
      : job_(job), tell_(std::move(tell)) {}
  void started(const jobs::StartReport& start) override;
  void finished_epoch(const jobs::EpochReport& epoch) override;
  void saved(const jobs::SaveReport& report) override;
  void finished(const jobs::TrainReport& report) override;
  void interrupted(const jobs::TrainReport& report, const Interruption& how);

 private:
  void tell(const nlohmann::ordered_json& json) const;

  const jobs::Job& job_;
  const Tell tell_;
};

/// Returns the values of measures by name; null where there was nothing to measure.
nlohmann::ordered_json measures_json(const jobs::Measures& measures);

/// Returns a measure with four digits behind the point, or "none" where there was nothing to
/// measure.
std::string measured(double value);

/// Returns a word as a shell reads it: in quotes if it needs them.
std::string shell_word(const std::string& word);

}  // namespace embertable::tools
