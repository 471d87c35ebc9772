#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "embertable/executor.h"
#include "variable/row_locator.h"

namespace embertable {

/// Where a row lies among blocks, as the end of a message about it: ", in component 1 ('w/part_1')
/// of rows [3, 6)"; of a row that there is not ", before" or ", behind" the block that is nearest.
std::string block_text(const RowLocator& blocks, std::int64_t row,
                       FunctionRef<std::string(std::size_t block)> name);

}  // namespace embertable
