#include "apps/cli/best_epoch.h"

#include <fmt/format.h>

#include <optional>

#include "apps/cli/command_line.h"
#include "apps/jobs/run/best_epoch.h"

namespace embertable::tools {

std::string best_epoch_of(const std::string& run) {
  const std::optional<jobs::KeptEpoch> best = jobs::best_of_run(run);
  if (!best) return run;
  print_message(
      fmt::format("takes the run's best epoch, {}: {}", best->epoch, best->step.string()));
  return best->run.string();
}

}  // namespace embertable::tools
