#pragma once

#include <cstddef>
#include <cstdint>

#include "bench/loads/load.h"

namespace embertable::bench {

/// Returns the fewest bytes that the hosts of a training step have to send each other for a batch,
/// if every replica is a host and rows are dealt to hosts in blocks. For each row that a host names
/// and another one owns: its number among the owner's rows, in the narrowest integer of 1, 2, 4 or
/// 8 bytes that holds them all; the row; and the sum of its gradients. The owner knows from the
/// numbers which rows the sums belong to. Requires: one replica a host.
std::size_t smallest_message_bytes(const Load& load, const LoadBatch& batch);

}  // namespace embertable::bench
