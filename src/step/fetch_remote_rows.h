#pragma once

#include <cstdint>

#include "kernels/level.h"
#include "step/message.h"
#include "step/table_run.h"
#include "step/workers.h"

namespace embertable {

/// Asks the owners for the rows that this host's features name and others own, and waits for no
/// answer. Nothing is asked for replicated tables. The step's memory is borrowed until the
/// channel's round ends. Collective. Throws what the exchange throws. Requires: a RowRouter has
/// run.
void ask_for_rows(HostStep& step, Messages& messages, Channel channel);

/// Fetches the rows that a step has asked for on a channel, and fills every table's route.
/// Received rows are valid until the next round starts on Channel::kStep. `has_next`: this host has
/// its next batch. Returns whether all hosts have theirs. Collective. Throws what the exchange
/// throws and, if `training`, as check_update_size.
bool fetch_remote_rows(HostStep& step, bool training, Messages& messages, Workers& workers,
                       SimdLevel level, Channel asked_on, bool has_next);

/// Makes translated lookup plans name rows of the whole table again, so that the step can be looked
/// up anew after an error. `host` is the step's.
void put_rows_back(HostStep& step, std::int32_t host) noexcept;

/// Returns the row of the whole table that an entry of a plan names. Requires, with several hosts:
/// fetch_remote_rows has run.
std::int64_t global_row(const Placement& placement, const TableRoute& route, std::int32_t host,
                        const LookupPlan& plan, std::int64_t entry);

}  // namespace embertable
