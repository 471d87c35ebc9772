// Binds gradients of tables by row.
#include "python/src/row_gradients.h"

#include <algorithm>

#include "python/src/arguments.h"
#include "python/src/arrays.h"
#include "python/src/bindings.h"
#include "python/src/text_caster.h"

namespace embertable::python {
namespace {

RowGradients converted(const GradientSumsOfTable& sums, const TableConfig& table) {
  const auto rows = static_cast<std::int64_t>(sums.ids.size());
  return {copy_of(sums.ids), copy_of(sums.sums, Shape{rows, table.dim}),
          nb::make_tuple(table.vocabulary_size, table.dim)};
}

nb::object dense(const RowGradients& self) {
  const nb::object all =
      numpy().attr("zeros")(self.dense_shape, nb::arg("dtype") = self.values.attr("dtype"));
  all[self.indices] = self.values;
  return all;
}

}  // namespace

nb::object copy_of(std::span<const std::int64_t> numbers) {
  const nb::object array = new_integers(Shape{static_cast<std::int64_t>(numbers.size())});
  const IntegerArray memory(array, "an array");
  std::copy(numbers.begin(), numbers.end(),
            static_cast<std::int64_t*>(const_cast<void*>(memory.span().data())));
  return array;
}

nb::object copy_of(std::span<const float> numbers, const Shape& shape) {
  const nb::object array = new_floats(shape);
  const WritableArray memory(array, "an array");
  std::copy(numbers.begin(), numbers.end(), memory.span().begin());
  return array;
}

nb::dict row_gradients(const std::map<TablePtr, GradientSumsOfTable>& sums,
                       const Configuration& configuration) {
  nb::dict by_table;
  for (const auto& [table, of_table] : sums)
    by_table[configuration.object_of(table)] = nb::cast(converted(of_table, *table));
  return by_table;
}

void bind_row_gradients(nb::module_& module) {
  nb::class_<RowGradients>(
      module, "RowGradients",
      R"(The gradient of a table by row, in the form of TensorFlow's IndexedSlices: rows that no id named are
left out. ShardedVariable's scatters take one.

>>> table = embertable.TableConfig(3, 1, name='t')
>>> rows = {table: np.zeros((3, 1), np.float32)}
>>> embertable.serving_embedding_gradients(np.array([1, 2]), None, None, rows, embertable.FeatureConfig(table))[table]
RowGradients(2 of 3 rows, dim 1))")
      .def_ro("indices", &RowGradients::indices, "int64 [n], rising: the rows.")
      .def_ro("values", &RowGradients::values, "float32 [n, dim]: the gradient of each.")
      .def_ro("dense_shape", &RowGradients::dense_shape, "(vocabulary_size, dim).")
      .def("dense", dense,
           R"(Gives a new array of all rows, zeros where no id named one.

>>> tables = embertable.DirectEmbedding(embertable.FeatureConfig(embertable.TableConfig(3, 1, name='t')),
...                                     strategy=embertable.EngineStrategy(threads=1))
>>> activations, lookup = tables.look_up([1])
>>> (sums,) = tables.gradients(lookup, np.ones((1, 1))).values()
>>> sums.dense().tolist()
[[0.0], [1.0], [0.0]])")
      .def("__getstate__",
           [](const RowGradients& self) {
             return nb::make_tuple(self.indices, self.values, self.dense_shape);
           })
      .def("__setstate__",
           [](RowGradients& self, nb::handle fields) {
             new (&self) RowGradients{fields[0], fields[1], fields[2]};
           })
      .def("__repr__", [](const RowGradients& self) {
        return "RowGradients(" + text(self.indices.attr("size")) + " of " +
               text(self.dense_shape[0]) + " rows, dim " + text(self.dense_shape[1]) + ")";
      });
}

}  // namespace embertable::python
