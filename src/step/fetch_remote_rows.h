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

/// Hears which rows of this host the others look up: fills `owed` and `entries_elsewhere` of every
/// table's route. Collective. Throws what the exchange throws, and IoError for a message that asks
/// for what is not there. Requires: the step has asked on this channel.
void hear_questions(HostStep& step, Messages& messages, Channel asked_on);

/// Sends every host the rows that it asked for, and receives those that were asked of others: fills
/// `received` of every table's route, which is valid until the next round starts on Channel::kStep.
/// The hosts also tell each other whether they know their next step, as this one does if
/// `has_next`. Returns whether all do. Collective. Throws what the exchange throws, and IoError for
/// a message that does not have the rows. Requires: the questions were heard.
bool swap_rows(HostStep& step, Messages& messages, Workers& workers, SimdLevel level,
               bool has_next);

/// Makes translated lookup plans name rows of the whole table again, so that the step can be looked
/// up anew after an error. `host` is the step's.
void put_rows_back(HostStep& step, std::int32_t host) noexcept;

/// Returns the row of the whole table that an entry of a plan names. Requires, with several hosts:
/// the rows were swapped.
std::int64_t global_row(const Placement& placement, const TableRoute& route, std::int32_t host,
                        const LookupPlan& plan, std::int64_t entry);

}  // namespace embertable
