// Binds the initializers of tables and slots.
#include "embertable/initializer.h"

#include <cmath>
#include <cstring>
#include <vector>

#include "embertable/errors.h"
#include "python/src/arguments.h"
#include "python/src/arrays.h"
#include "python/src/bindings.h"
#include "python/src/callback.h"
#include "python/src/classes/collected.h"
#include "python/src/classes/described.h"
#include "python/src/python_initializer.h"
#include "python/src/text_caster.h"

namespace embertable::python {
namespace {

/// Returns the nearest float. Throws ValueError for a finite number that has none.
float single(nb::handle value, const char* what) {
  const double given = number(value, what);
  const auto rounded = static_cast<float>(given);
  if (std::isinf(rounded) && !std::isinf(given))
    throw ValueError(std::string(what) + " must be in the range of float32, got " + text(value));
  return rounded;
}

PythonInitializer zeros() { return {Initializer::zeros(), "zeros", nb::make_tuple(), {}}; }

PythonInitializer constant(nb::handle value) {
  return {Initializer::constant(single(value, "value")), "constant", nb::make_tuple(value), {}};
}

PythonInitializer uniform(nb::handle low, nb::handle high, nb::handle seed) {
  return {Initializer::uniform(single(low, "low"), single(high, "high"), seed_of(seed)),
          "uniform",
          nb::make_tuple(low, high, seed),
          {}};
}

PythonInitializer normal(nb::handle mean, nb::handle stddev, nb::handle seed) {
  return {Initializer::normal(single(mean, "mean"), single(stddev, "stddev"), seed_of(seed)),
          "normal",
          nb::make_tuple(mean, stddev, seed),
          {}};
}

PythonInitializer truncated_normal(nb::handle mean, nb::handle stddev, nb::handle seed) {
  return {
      Initializer::truncated_normal(single(mean, "mean"), single(stddev, "stddev"), seed_of(seed)),
      "truncated_normal",
      nb::make_tuple(mean, stddev, seed),
      {}};
}

PythonInitializer row_id(nb::handle offset) {
  return {Initializer::row_id(single(offset, "offset")), "row_id", nb::make_tuple(offset), {}};
}

PythonInitializer values(nb::handle array) {
  const FloatArray given(array, "the values of a table");
  const nb::object kept = new_floats(given.shape());  // the caller may change its array later
  const std::span<float> copy = WritableArray(kept, "the values of a table").span();
  const FloatSpan span = given.span();
  for (std::size_t i = 0; i < copy.size(); ++i) copy[i] = span[static_cast<std::int64_t>(i)];
  return {Initializer::values({copy.begin(), copy.end()}), "values", nb::make_tuple(kept), {}};
}

/// Requires the GIL.
void fill(const Callback& function, const std::string& table, const RowRange& range,
          std::span<float> out) {
  const nb::object rows = function(nb::cast(range));
  const FloatArray given(rows, table + "what an initializer returns");
  const Shape expected{range.rows, range.dim};
  if (given.shape() != expected) {
    throw ValueError(table + "what an initializer returns must have shape " + expected.to_string() +
                     ", got " + given.shape().to_string());
  }
  const FloatSpan span = given.span();
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = span[static_cast<std::int64_t>(i)];
}

PythonInitializer function(nb::handle call) {
  CallbackPtr callback = make_callback(call, "an initializer's function");
  Initializer value = initializer_from(callback, "");
  return {std::move(value), "function", nb::object(), std::move(callback)};
}

nb::tuple initializer_state(const PythonInitializer& self) {
  return nb::make_tuple(self.name, self.function
                                       ? nb::object(nb::make_tuple(self.function->function()))
                                       : self.recipe);
}

void set_state(PythonInitializer& self, nb::handle state) {
  const nb::object name = state[0], arguments = state[1];
  const nb::object made = nb::type<PythonInitializer>().attr(name)(*nb::tuple(arguments));
  new (&self) PythonInitializer(nb::cast<const PythonInitializer&>(made));
}

void bind_row_range(nb::module_& module) {
  nb::class_<RowRange>(
      module, "RowRange",
      R"(A run of rows of one table that is to be filled: what an initializer's function receives.

>>> table = embertable.TableConfig(4, 2, initializer=embertable.Initializer.function(lambda rows: np.zeros((rows.rows, rows.dim))))
>>> embertable.Embedding(embertable.FeatureConfig(table)).embedding_tables()[table].shape
(4, 2))")
      .def("__repr__", described)
      .def_ro("first_row", &RowRange::first_row)
      .def_ro("rows", &RowRange::rows)
      .def_ro("vocabulary_size", &RowRange::vocabulary_size)
      .def_ro("dim", &RowRange::dim);
}

}  // namespace

Initializer initializer_from(const CallbackPtr& function, const std::string& table) {
  const std::string of = table.empty() ? "" : table + ": ";
  return Initializer::function([function, of](const RowRange& range, std::span<float> out) {
    with_gil([&] { fill(*function, of, range, out); });
  });
}

void bind_initializer(nb::module_& module) {
  bind_row_range(module);
  nb::class_<PythonInitializer>(
      module, "Initializer", nb::type_slots(Collected<PythonInitializer>::slots),
      R"(The first values of a table. Every element depends on (seed, table, row, column) alone, so that neither hosts nor threads
show.

>>> embertable.Initializer.uniform(-1, 1, seed=7)
uniform(low=-1, high=1, seed=7))")
      .def_static("zeros", zeros,
                  R"(Gives an initializer of zeros, which writes nothing.

>>> table = embertable.TableConfig(2, 2, initializer=embertable.Initializer.zeros())
>>> embedding = embertable.Embedding(embertable.FeatureConfig(table))
>>> bool(embedding.embedding_tables()[table].any())
False)")
      .def_static("constant", constant, nb::arg("value"),
                  R"(Gives an initializer with this value for each element.

value: a number.

>>> table = embertable.TableConfig(2, 2, initializer=embertable.Initializer.constant(3))
>>> embedding = embertable.Embedding(embertable.FeatureConfig(table))
>>> embedding.embedding_tables()[table].tolist()
[[3.0, 3.0], [3.0, 3.0]])")
      .def_static(
          "uniform", uniform, nb::arg("low"), nb::arg("high"), nb::arg("seed") = 0,
          R"(Gives an initializer that draws from [low, high), by (seed, table, row, column) alone.

low, high: finite numbers, low < high, else ValueError; seed: >= 0.

>>> table = embertable.TableConfig(2, 2, initializer=embertable.Initializer.uniform(1, 2))
>>> embedding = embertable.Embedding(embertable.FeatureConfig(table))
>>> bool(embedding.embedding_tables()[table].min() >= 1)
True)")
      .def_static(
          "normal", normal, nb::arg("mean") = 0.0, nb::arg("stddev") = 0.05, nb::arg("seed") = 0,
          R"(Gives an initializer that draws from a normal distribution, by (seed, table, row, column) alone.

mean, stddev: finite numbers, stddev >= 0, else ValueError; seed: >= 0.

>>> table = embertable.TableConfig(2, 2, initializer=embertable.Initializer.normal(5, 0))
>>> embedding = embertable.Embedding(embertable.FeatureConfig(table))
>>> embedding.embedding_tables()[table].tolist()
[[5.0, 5.0], [5.0, 5.0]])")
      .def_static(
          "truncated_normal", truncated_normal, nb::arg("mean") = 0.0, nb::arg("stddev") = 0.05,
          nb::arg("seed") = 0,
          R"(Gives an initializer that draws from a normal distribution, and again beyond two stddev.

mean, stddev: finite numbers, stddev >= 0 being that of the whole distribution, else ValueError; seed: >= 0.

>>> table = embertable.TableConfig(2, 2, initializer=embertable.Initializer.truncated_normal(0, 1))
>>> embedding = embertable.Embedding(embertable.FeatureConfig(table))
>>> bool(embedding.embedding_tables()[table].max() <= 2)
True)")
      .def_static("row_id", row_id, nb::arg("offset") = 0.0,
                  R"(Gives an initializer that sets each element to its row's number.

offset: is added.

>>> table = embertable.TableConfig(2, 2, initializer=embertable.Initializer.row_id(10))
>>> embedding = embertable.Embedding(embertable.FeatureConfig(table))
>>> embedding.embedding_tables()[table].tolist()
[[10.0, 10.0], [11.0, 11.0]])")
      .def_static("values", values, nb::arg("values"),
                  R"(Gives an initializer with the values of the whole table.

values: floats [vocabulary_size, dim]; copied. Building a table of another size raises ValueError.

>>> table = embertable.TableConfig(2, 2, initializer=embertable.Initializer.values([[1.0, 2.0], [3.0, 4.0]]))
>>> embedding = embertable.Embedding(embertable.FeatureConfig(table))
>>> embedding.embedding_tables()[table].tolist()
[[1.0, 2.0], [3.0, 4.0]])")
      .def_static("function", function, nb::arg("function"),
                  R"(Gives an initializer that asks a function, when tables are made.

function: function(RowRange) gives an array [rows, dim]; called for the ranges of a table in any order and
on any thread. What it raises, the call that makes the tables raises.

>>> table = embertable.TableConfig(2, 2, initializer=embertable.Initializer.function(lambda r: np.full((r.rows, r.dim), 1.0 * r.first_row)))
>>> embedding = embertable.Embedding(embertable.FeatureConfig(table))
>>> embedding.embedding_tables()[table].shape
(2, 2))")
      .def("__repr__", [](const PythonInitializer& self) { return self.value.to_string(); })
      .def("__getstate__", initializer_state)
      .def("__setstate__", set_state);
}

}  // namespace embertable::python
