#pragma once

#include <cstdint>

#include "kernels/level.h"
#include "step/scratch_pool.h"
#include "step/table_update.h"

namespace embertable {

/// Up to kMaxSideBySide small one-hot tables at once, each with a `direct` plan of one piece, which
/// is not empty: gradients are added in order to one accumulator per row that starts at -0 (-0 + x
/// is x, bit for bit), then the rule is applied. Row numbers are not wide. unique: [count],
/// distinct rows of each table.
inline constexpr std::int32_t kMaxSideBySide = 8;
void update_small_tables(const TableUpdate* const* tables, std::int32_t count, std::int64_t* unique,
                         GroupScratch& scratch, SimdLevel level) noexcept;

}  // namespace embertable
