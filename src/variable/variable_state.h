#pragma once

#include <optional>
#include <string>

#include "embertable/variables/sharded_variable.h"

namespace embertable {

/// State that the copies of a Variable share.
struct Variable::State {
  std::string name;
  /// Dtype of every value; like the shape, read while the value changes.
  DType dtype = DType::kFloat32;
  Shape shape;
  Tensor value;                   ///< packed, not wrapped, or what `over` stands over
  std::byte* in_place = nullptr;  ///< caller-owned memory only: where row 0 is
  std::int64_t row_stride = 0;    ///< bytes
  bool assignable = true;
  bool placeholder = false;  ///< has no value, only a dtype and a shape
  std::optional<SaveSliceInfo> save_slice_info;

  /// True if it can be written without a copy first.
  bool settled() const {
    return assignable && (in_place != nullptr || value.owner().use_count() == 1);
  }

  /// Returns where row 0 may be written: after this call no tensor that was returned before sees
  /// it, except tensors of caller-owned memory. Requires: assignable.
  std::byte* writable_rows() {
    return in_place != nullptr || value.size() == 0 ? in_place : value.mutable_bytes().data();
  }
};

}  // namespace embertable
