#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "embertable/executor.h"
#include "variable/row_locator.h"

namespace embertable {

/// Returns the end of a message that says where a row lies among blocks: ", in component 1
/// ('w/part_1') of rows [3, 6)"; for a row out of bounds ", before" or ", behind" the nearest
/// block.
std::string block_text(const RowLocator& blocks, std::int64_t row,
                       FunctionRef<std::string(std::size_t block)> name);

}  // namespace embertable
