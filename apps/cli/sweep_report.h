#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "apps/jobs/sweep/sweep.h"

namespace embertable::tools {

/// Reports a sweep as text: a line for each run and for each warning that no run before had, then a
/// table of all, best first.
class SweepText final : public jobs::SweepObserver {
 public:
  void started(const jobs::Job& job, std::int64_t runs, std::int64_t finished) override;
  void chose(std::int64_t at_once, std::int32_t threads) override;
  void ran(const jobs::SweptRun& run) override;
  void ranked(const jobs::Job& job, const std::vector<jobs::SweptRun>& runs) override;
  void tested(const jobs::BestRun& best) override;

 private:
  std::vector<std::string> metrics_;
  std::int64_t runs_ = 0, ran_ = 0;
  std::set<std::string> warned_;
};

/// Reports a sweep as JSON objects: each goes to `tell` as a text without line breaks, or is
/// printed as a line.
class SweepJson final : public jobs::SweepObserver {
 public:
  using Tell = std::function<void(const std::string& event)>;
  explicit SweepJson(Tell tell = {}) : tell_(std::move(tell)) {}
  void started(const jobs::Job& job, std::int64_t runs, std::int64_t finished) override;
  void chose(std::int64_t at_once, std::int32_t threads) override;
  void ran(const jobs::SweptRun& run) override;
  void ranked(const jobs::Job& job, const std::vector<jobs::SweptRun>& runs) override;
  void tested(const jobs::BestRun& best) override;

 private:
  void tell(const nlohmann::ordered_json& json) const;
  Tell tell_;
};

/// Returns "model.dim = 16, optimizer.learning_rate = 0.1".
std::string text_of(const jobs::SweepSetting& setting);

}  // namespace embertable::tools
