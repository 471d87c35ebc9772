#pragma once

#include <string>
#include <vector>

#include "embertable/variables/sharded_variable.h"
#include "tensor/index_parts.h"
#include "variable/row_addresses.h"
#include "variable/row_locator.h"
#include "variable/variable_state.h"

namespace embertable {

/// State that the copies of a ShardedVariable share.
struct ShardedState final : IndexSubject {
  /// Requires: `components` has variables that go together.
  ShardedState(std::vector<Variable> components, ShardedVariableOptions options);

  std::vector<Variable> components;
  std::vector<Variable> exported;  ///< the placeholder of all of them
  ShardedVariableOptions options;
  bool one_variable = false;  ///< made by `of`
  Shape shape;
  RowLocator locator;
  std::int64_t row_bytes = 0;  ///< size of a row without gaps

  /// Scratch for changes, which exclude each other: for the largest scatter so far, its indices and
  /// notes on up to 2^20 of them.
  Arena scratch;

  DType dtype() const { return components.front().dtype(); }
  Executor* executor() const { return options.executor.get(); }

  /// True if the components have the sizes of a division (ShardedVariableOptions).
  bool div_sharded() const;

  /// Returns the shape of `rows` rows.
  Shape rows_shape(std::int64_t rows) const { return shape.with_leading(rows); }

  /// Returns where components are read.
  std::vector<RowBlockPlace> places() const;

  /// Returns where components may be written if they are touched; others as they are read. Throws
  /// StateError naming a touched one that is not assignable; nothing has then changed.
  std::vector<RowBlockPlace> writable_places(const std::vector<bool>& touched);

  /// Returns the components that these rows lie in, or all of them if that makes no difference to
  /// `writable_places`.
  std::vector<bool> touched_by(const RowIndices& rows) const;

  /// "sharded variable 'w': "; "variable 'w': " of one variable
  std::string subject() const override;

  /// Names the component that has the row, or the nearest one; nothing of one variable.
  std::string at_row(std::int64_t row) const override;

  /// Throws ValueError unless value has this dtype and the given number of rows of this shape.
  void check_value(const char* operation, const Tensor& value, std::int64_t rows) const;

  /// True if a component shows elements of the value and is written in place.
  bool overlaps(const Tensor& value) const;
};

}  // namespace embertable
