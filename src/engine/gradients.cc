// What comes from the caller for an update, checked before anything changes, and what goes back.
#include <fmt/format.h>

#include "embertable/errors.h"
#include "engine/core.h"
#include "input/gradient.h"
#include "kernels/finite.h"

namespace embertable::engine {

/// Everything that an update needs of the caller, checked. Changes nothing but the step.
void Core::take_step(Step& step, FunctionRef<const Nested<Gradient>&(std::int32_t)> gradients,
                     bool copy) {
  step.gradient_memory.reset();
  step.gradient.assign(cores_ * features_.size(), nullptr);
  for (std::int32_t r = 0; r < replicas_; ++r) take_gradients(step, r, gradients(r), copy);
  if (options_.gradient_policy == GradientPolicy::kError) check_finite(step);
  ask_rates(assembly_, taken_ + 1, step.rates);
}

/// Checks one replica's gradients, and notes where they are; copies what will be needed after the
/// call.
void Core::take_gradients(Step& step, std::int32_t replica, const Nested<Gradient>& gradients,
                          bool copy) {
  assert_same_structure(features_.structure(), gradients.structure(), "gradients");
  for (std::int64_t i = 0; i < features_.size(); ++i) {
    check_gradient(gradients[i], activation_shape(step, replica, i), features_.path(i), replica);
  }
  for (std::int64_t i = 0; i < features_.size(); ++i) {
    if (const float* gradient = floats_of(gradients[i], copy, step.gradient_memory))
      point_cores_at(step, replica, i, gradient);
    else if (gradients[i].is_none() && options_.log)
      warn("feature '" + features_.path(i) + "': no gradient, zeros are used");
  }
}

/// Each core has its part of the replica's gradient.
void Core::point_cores_at(Step& step, std::int32_t replica, std::int64_t feature,
                          const float* gradient) {
  for (std::int32_t c = replica * cores_per_replica_; c < (replica + 1) * cores_per_replica_; ++c) {
    step.gradient[c * features_.size() + feature] = gradient;
    gradient += activation_floats(step, c, feature);
  }
}

void Core::check_finite(Step& step) const {
  for (std::int32_t c = 0; c < cores_; ++c)
    for (std::int64_t i = 0; i < features_.size(); ++i) check_finite(step, c, i);
}

void Core::check_finite(Step& step, std::int32_t core, std::int64_t feature) const {
  const float* gradient = step.gradient[core * features_.size() + feature];
  if (!gradient) return;
  const ResolvedTable& table = assembly_.tables[assembly_.table_of[feature]];
  const std::int64_t count = activation_floats(step, core, feature);
  const std::int64_t bad = first_not_finite(gradient, count, level_);
  if (bad == count) return;
  std::int64_t before = 0;  // floats of the replica's other cores
  for (std::int32_t c = replica_of(core) * cores_per_replica_; c < core; ++c)
    before += activation_floats(step, c, feature);
  const std::int64_t dim = table.config.dim, sample = (before + bad) / dim;
  const std::string path = features_.path(feature);
  throw DataError(
      fmt::format("feature '{}', replica {}, sample {}: the gradient must be finite, got {} in "
                  "column {}; in step {} it would reach {} of table '{}'",
                  path, replica_of(core), sample, gradient[bad], bad % dim, taken_ + 1,
                  reached_row(step, core, feature, bad / dim), table.name()),
      {.feature = path, .replica = replica_of(core), .sample = sample, .position = before + bad});
}

/// "row 7", or "no row".
std::string Core::reached_row(Step& step, std::int32_t core, std::int64_t feature,
                              std::int64_t sample) const {
  const LookupPlan& plan = step.plan(core, feature);
  const std::int64_t entry = plan.first_entry(sample);
  if (entry == plan.first_entry(sample + 1)) return "no row";
  const auto table = static_cast<std::size_t>(assembly_.table_of[feature]);
  const std::int32_t host = core / (cores_ / hosts_);
  return fmt::format("row {}", team_->host(host).row_of(tables(), step, table, plan, entry));
}

GradientSumsOfTable Core::gradient_sums(std::string_view table) {
  require_accelerated("gradient_sums");
  const Tables& rows = settled_tables("gradient_sums");
  tables();  // not another engine's
  const auto index = static_cast<std::size_t>(rows.find(table).table - rows.tables().data());
  const ResolvedTable& resolved = assembly_.tables[index];
  if (table != resolved.name() || !resolved.rule->gives_sums()) {
    throw ValueError("gradient_sums: '" + std::string(table) +
                     "' must be a table whose rule is none, its rule is " +
                     resolved.optimizer->rule());
  }
  std::vector<std::pair<std::int64_t, const float*>> sums;
  for (std::int32_t h = 0; h < hosts_; ++h) {
    const GradientSums& part = team_->host(h).gradient_sums(static_cast<std::int64_t>(index));
    for (std::int64_t i = 0; i < part.size(); ++i)
      sums.emplace_back(rows.tables()[index].placement.global_row(h, part.row(i)), part.sum(i));
  }
  return in_order(std::move(sums), resolved.config.dim, summed_step_);
}

}  // namespace embertable::engine
