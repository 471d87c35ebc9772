#include "engine/gradient_intake.h"

#include <fmt/format.h>

#include <optional>

#include "embertable/errors.h"

namespace embertable::engine {
namespace {

/// Describes where the gradient of one output row of a core goes.
std::string reached_row(const Setup& setup, const HostTeam& hosts, Step& step, std::int32_t core,
                        std::int64_t feature, std::int64_t output) {
  const LookupPlan& plan = step.plan(core, feature);
  if (plan.is_zeros(output)) return "no row";
  const Host& host = hosts.host(core / (setup.cores / setup.hosts));
  const std::int64_t table = setup.assembly.table_of[feature];
  return "row " + std::to_string(host.row_of(step, table, plan, plan.first_entry(output)));
}

}  // namespace

std::int64_t activation_floats(const Setup& setup, Step& step, std::int32_t core,
                               std::int64_t feature) {
  return step.plan(core, feature).outputs * setup.table(feature).config.dim;
}

void GradientIntake::accept(Step& step, std::int64_t number, GradientsOfReplica gradients,
                            bool copy, const HostTeam& hosts) {
  const std::int64_t features = setup_.features.size();
  const bool check = setup_.options.gradient_policy == GradientPolicy::kError;
  setup_.group->together(Stage{"apply_gradients", number}, [&] {
    step.gradient_memory.reset();
    step.gradient.assign(setup_.cores * features, nullptr);
    tiles_.clear();
    for (std::int32_t replica = 0; replica < setup_.replicas; ++replica) {
      const Nested<Gradient>& of = gradients(replica);
      for (std::int64_t i = 0; i < features; ++i)
        check_gradient(of[i], step.shape[replica * features + i], setup_.features.path(i), replica);
      for (std::int64_t i = 0; i < features; ++i) take(step, replica, i, of[i], copy, check);
    }
    const auto bad =
        tiles_.run(*setup_.executor, setup_.options.tuning.inline_floats, check, setup_.level);
    if (bad) refuse(step, number, *bad, hosts);
    ask_rates(setup_.assembly, number, step.rates);
  });
}

/// Keeps where the gradient of one feature of one replica will be, and lists what is to be copied
/// or checked.
void GradientIntake::take(Step& step, std::int32_t replica, std::int64_t feature,
                          const Gradient& gradient, bool copy, bool check) {
  const FloatSpan& values = gradient.values;
  if (gradient.is_none()) {
    if (setup_.options.log)
      setup_.warn("feature '" + setup_.features.path(feature) + "': no gradient, zeros are used");
    return;
  }
  const bool copies = copy || values.is_double();
  float* const to = copies ? step.gradient_memory.take<float>(values.size()).data() : nullptr;
  const float* const all = copies ? to : static_cast<const float*>(values.data());
  const std::int32_t begin = replica * setup_.cores_per_replica;
  std::int64_t first = 0;
  for (std::int32_t c = begin; all && c < begin + setup_.cores_per_replica; ++c) {
    const std::int64_t count = activation_floats(setup_, step, c, feature);
    step.gradient[c * setup_.features.size() + feature] = all + first;
    if (copies || check)
      tiles_.add({c, feature, values, first, count, copies ? to + first : nullptr});
    first += count;
  }
}

/// Throws DataError because a number of one core's gradient of update `number` is not finite.
void GradientIntake::refuse(Step& step, std::int64_t number, const GradientTiles::Place& bad,
                            const HostTeam& hosts) const {
  const auto core = static_cast<std::int32_t>(bad.core);
  const std::int32_t replica = core / setup_.cores_per_replica;
  std::int64_t before = 0;  // floats of the replica's other cores
  for (std::int32_t c = replica * setup_.cores_per_replica; c < core; ++c)
    before += activation_floats(setup_, step, c, bad.feature);
  const ResolvedTable& table = setup_.table(bad.feature);
  const std::int64_t dim = table.config.dim, sample = (before + bad.position) / dim;
  const std::string path = setup_.features.path(bad.feature);
  throw DataError(
      fmt::format("feature '{}', replica {}, sample {}: the gradient must be finite, got {} in "
                  "column {}; in step {} it would reach {} of table '{}'",
                  path, replica, sample,
                  step.gradient[core * setup_.features.size() + bad.feature][bad.position],
                  bad.position % dim, number,
                  reached_row(setup_, hosts, step, core, bad.feature, bad.position / dim),
                  table.name()),
      {.feature = path, .replica = replica, .sample = sample, .position = before + bad.position});
}

}  // namespace embertable::engine
