#pragma once

#include <cstdint>
#include <span>

#include "step/table_run.h"
#include "step/workers.h"

namespace embertable {

/// What one core of another host sent for one table. Empty for this host's cores.
struct SentGradients {
  std::span<const std::uint64_t> row;  ///< local rows
  const float* gradient = nullptr;     ///< [row.size(), dim]
};

/// Plans the update of every table on one of several hosts: lists its pieces of gradients by
/// core, those of this host's features and those that were sent, and scatters the entries into
/// buckets. `sent`: by table and core of all hosts. `me`: this host. Throws for replicated
/// tables as check_planned_size. Requires: the features' gradients are set.
void plan_own_updates(HostStep& step, std::span<const SentGradients> sent, std::int32_t me,
                      Workers& workers);

}  // namespace embertable
