#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "embertable/batch.h"
#include "engine/setup/host_group.h"
#include "engine/tables.h"

namespace embertable::engine {

/// Read and change rows wherever they are: in this process or, if the hosts are several, in those
/// of the others, who call this too, each with ids of its own. Of rows that several hosts assign,
/// those of the last host stay. Throw as Tables::find and Tables::checked_rows; nothing
/// has changed then, on any host.
void read_rows(HostGroup& hosts, const Tables& tables, std::string_view variable, IntegerSpan ids,
               std::span<float> out);
void assign_rows(HostGroup& hosts, Tables& tables, std::string_view variable, IntegerSpan ids,
                 std::span<const float> values);

/// Copies rows [first, first + out.size() / width) of a variable to `out` on host 0; `out` of the
/// others is not touched.
void copy_rows_to_first(HostGroup& hosts, const Tables& tables, const Tables::Variable& variable,
                        std::int64_t first, std::span<float> out);

}  // namespace embertable::engine
