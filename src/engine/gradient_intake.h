#pragma once

#include <cstdint>
#include <string>

#include "engine/check_gradients.h"
#include "engine/gradient_tiles.h"
#include "engine/host_team.h"
#include "engine/schedule/step.h"
#include "engine/setup/setup.h"

namespace embertable::engine {

/// Returns one replica's tree of gradients, whose structure has been checked.
using GradientsOfReplica = FunctionRef<const Nested<Gradient>&(std::int32_t replica)>;

/// Returns the floats of one core's activation of a feature.
std::int64_t activation_floats(const Setup& setup, Step& step, std::int32_t core,
                               std::int64_t feature);

/// Checks the gradients of a call and brings them into a step.
class GradientIntake {
 public:
  explicit GradientIntake(const Setup& setup) : setup_(setup) {}

  /// Checks the gradients of a step, which is update `number` of its rows, and the rates of that
  /// update, and keeps both in the step. Gradients stay in the caller's memory unless `copy` is set
  /// or they are doubles. `hosts` have looked the step up. Changes nothing else. All processes call
  /// it together; throws ValueError, DataError, what a rate throws, and StateError where another
  /// process does.
  void accept(Step& step, std::int64_t number, GradientsOfReplica gradients, bool copy,
              const HostTeam& hosts);

 private:
  void take(Step& step, std::int32_t replica, std::int64_t feature, const Gradient& gradient,
            bool copy, bool check);
  [[noreturn]] void refuse(Step& step, std::int64_t number, const GradientTiles::Place& bad,
                           const HostTeam& hosts) const;

  const Setup& setup_;
  GradientTiles tiles_;
};

}  // namespace embertable::engine
