#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "checkpoint/reader.h"
#include "embertable/variables/tensor.h"

namespace embertable::sharded {

/// The dtype's name in `.safetensors`, and back; none for one that no variable has.
std::string_view stored_name(DType dtype) noexcept;
std::optional<DType> dtype_of_stored(std::string_view name) noexcept;

/// A variable in a checkpoint: a dense tensor of a caller's, or rows or slot of a table. Opened for
/// reading ranges of its rows. The reader outlives it. For one thread.
class SavedTensor {
 public:
  /// Throws KeyError naming directory and variable, IoError, DataLoss.
  SavedTensor(const checkpoint::Reader& reader, const std::string& name);

  const std::string& stored_dtype() const noexcept { return stored_dtype_; }
  const Shape& shape() const noexcept { return shape_; }

  /// Elements first, first + 1, ... as many as fill `out`. Throws IoError, DataLoss.
  void read(std::int64_t first, std::span<std::byte> out);

 private:
  bool find_tensor(const checkpoint::Reader& reader, const std::string& name);

  std::string stored_dtype_;
  Shape shape_;
  std::int64_t offset_ = 0;                    ///< position of the first byte in file_
  std::optional<checkpoint::BlockFile> file_;  ///< file of a dense tensor
  std::optional<checkpoint::VariableReader> of_table_;
};

}  // namespace embertable::sharded
