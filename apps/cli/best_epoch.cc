#include "apps/cli/best_epoch.h"

#include <fmt/format.h>

#include <cstdio>
#include <optional>

#include "apps/convert/printable.h"
#include "apps/jobs/run/best_epoch.h"

namespace embertable::tools {

std::string best_epoch_of(const std::string& run) {
  const std::optional<jobs::KeptEpoch> best = jobs::best_of_run(run);
  if (!best) return run;
  fmt::print(stderr, "embertable: takes the run's best epoch, {}: {}\n", best->epoch,
             jobs::printable(best->step.string()));
  return best->run.string();
}

}  // namespace embertable::tools
