#pragma once

#include <cstdint>

#include "step/message.h"
#include "step/table_run.h"

namespace embertable {

/// What several hosts add to a forward. Asks the owners for the rows that this host's features name
/// and others own, and fetches them: fills every table's route, and its lookup plans name local or
/// received rows from now on. Collective. Throws as check_update_size, and what the exchange
/// throws.
void fetch_remote_rows(HostStep& step, Messages& messages);

/// The row of the whole table that an entry of a plan names after fetch_remote_rows; with one host,
/// at any time.
std::int64_t global_row(const Placement& placement, const TableRoute& route, std::int32_t host,
                        const LookupPlan& plan, std::int64_t entry);

}  // namespace embertable
