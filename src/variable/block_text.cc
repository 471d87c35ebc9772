#include "variable/block_text.h"

#include <fmt/format.h>

#include <algorithm>

namespace embertable {

std::string block_text(const RowLocator& blocks, std::int64_t row,
                       FunctionRef<std::string(std::size_t block)> name) {
  const std::int64_t rows = blocks.rows();
  const char* where = row < 0 ? "before" : row < rows ? "in" : "behind";
  const std::int64_t nearest =
      std::clamp<std::int64_t>(row, 0, std::max<std::int64_t>(rows, 1) - 1);
  const std::size_t block = rows > 0 ? blocks.block(nearest) : 0;
  return fmt::format(", {} {} of rows [{}, {})", where, name(block), blocks.offsets()[block],
                     blocks.offsets()[block + 1]);
}

}  // namespace embertable
