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

/// Convert between a dtype and its name in `.safetensors`; empty for one that no variable has.
std::string_view stored_name(DType dtype) noexcept;
std::optional<DType> dtype_of_stored(std::string_view name) noexcept;

/// A variable in a checkpoint, opened for reading ranges of its rows: a dense tensor of the caller,
/// or rows or a slot of a table. The reader must outlive it. For one thread.
class SavedTensor {
 public:
  /// Throws KeyError, and ValueError for more axes than a Shape has, naming directory and variable;
  /// IoError, DataLoss.
  SavedTensor(const checkpoint::Reader& reader, const std::string& name);

  const std::string& stored_dtype() const noexcept { return stored_dtype_; }
  const Shape& shape() const noexcept { return shape_; }

  /// Reads elements first, first + 1, ... until `out` is full. Throws IoError, DataLoss.
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
