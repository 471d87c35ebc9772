#pragma once

#include <cstdint>

#include "step/message.h"
#include "step/table_run.h"

namespace embertable {

/// The part of a forward that only several hosts need. Asks the owners for the rows that this
/// host's features name and others own, and fetches them: fills every table's route, and makes its
/// lookup plans name local or received rows. Collective. Throws as check_update_size, and what the
/// exchange throws.
void fetch_remote_rows(HostStep& step, Messages& messages);

/// Returns the row of the whole table that an entry of a plan names. Requires, with several hosts:
/// fetch_remote_rows has run.
std::int64_t global_row(const Placement& placement, const TableRoute& route, std::int32_t host,
                        const LookupPlan& plan, std::int64_t entry);

}  // namespace embertable
