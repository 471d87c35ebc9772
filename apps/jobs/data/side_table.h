#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "apps/jobs/data/data_set.h"
#include "apps/jobs/data/records_spec.h"

namespace embertable::jobs {

/// Reads a side table into its column: one list for each row of the owner's keys, empty for a key
/// without a record. Leaves out at most `skip_bad` broken records, and returns which. Throws
/// what CsvReader throws, also for a key that two records have.
LeftOut read_side_table(const IdsSpec& spec, const std::vector<std::string>& paths,
                        const Vocabulary& owner, std::int64_t skip_bad, IdColumn& column);

}  // namespace embertable::jobs
