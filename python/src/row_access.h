#pragma once

#include <nanobind/nanobind.h>

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "embertable/embedding.h"
#include "python/src/arrays.h"

namespace embertable::python {

namespace nb = nanobind;

// Rows of an object that has `tables`, `read_rows` and `assign_rows`, as arrays. `ask(work)` runs
// work(object) without the GIL.

/// Returns the shape of one row of a variable: [dim], or [] for a row-wise slot. Throws as
/// `read_rows` of the object for an unknown variable.
template <class Object>
Shape row_shape(Object& object, std::string_view variable) {
  for (const TableInfo& table : object.tables()) {
    if (table.name == variable) return {table.dim};
    for (const TableInfo::Slot& slot : table.slots)
      if (table.name + "/" + slot.name == variable)
        return slot.row_wise ? Shape::scalar() : Shape{table.dim};
  }
  object.read_rows(variable, IntegerSpan(), {});
  return {};
}

/// Returns ids.shape + the shape of one row.
template <class Ask>
Shape rows_shape(Ask ask, const std::string& variable, const Shape& ids) {
  Shape all = ids;
  const Shape row = ask([&](auto& object) { return row_shape(object, variable); });
  for (const std::int64_t dim : row.dims()) all = all.append(dim);
  return all;
}

template <class Ask>
nb::object rows_read(Ask ask, const std::string& variable, nb::handle ids) {
  const IntegerArray rows(ids, "read_rows: ids");
  const std::vector<std::int64_t> numbers = copied(rows);
  const nb::object out = new_floats(rows_shape(ask, variable, rows.shape()));
  const WritableArray memory(out, "read_rows: out");
  ask([&](auto& object) { object.read_rows(variable, std::span(numbers), memory.span()); });
  return out;
}

template <class Ask>
void assign_rows_to(Ask ask, const std::string& variable, nb::handle ids, nb::handle values) {
  const IntegerArray rows(ids, "assign_rows: ids");
  const std::vector<std::int64_t> numbers = copied(rows);
  const FloatArray given(values, "assign_rows: values");
  const Shape expected = rows_shape(ask, variable, rows.shape());
  if (given.shape() != expected) {
    throw ValueError("assign_rows: values must have shape " + expected.to_string() + ", got " +
                     given.shape().to_string());
  }
  ask([&](auto& object) {
    const FloatSpan span = given.span();
    std::vector<float> narrowed;
    for (std::int64_t i = 0; span.is_double() && i < span.size(); ++i) narrowed.push_back(span[i]);
    const auto* floats = static_cast<const float*>(span.data());
    object.assign_rows(
        variable, std::span(numbers),
        span.is_double() ? std::span<const float>(narrowed) : std::span(floats, span.size()));
  });
}

}  // namespace embertable::python
