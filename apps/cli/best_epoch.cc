#include "apps/cli/best_epoch.h"

#include <fmt/format.h>

#include <optional>

#include "apps/cli/command_line.h"
#include "apps/jobs/run/best_epoch.h"

namespace embertable::tools {

std::string best_epoch_of(const std::string& run) {
  const std::optional<jobs::KeptEpoch> best = jobs::best_of_run(run);
  if (best)
    print_message(
        fmt::format("takes the run's best epoch, {}: {}", best->epoch, best->step.string()));
  const std::string taken = best ? best->run.string() : run;
  say_skipped(taken);
  return taken;
}

std::vector<std::string> say_skipped(const std::string& run) {
  std::vector<std::string> skipped = jobs::skipped_steps(run);
  for (const std::string& why : skipped)
    print_message(fmt::format("takes an older step; skipped: {}", why));
  return skipped;
}

}  // namespace embertable::tools
