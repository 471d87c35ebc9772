// Binds rules that callers write in Python.
#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "embertable/optimizer.h"
#include "python/src/arguments.h"
#include "python/src/arrays.h"
#include "python/src/bindings.h"
#include "python/src/callback.h"
#include "python/src/classes/described.h"
#include "python/src/gil.h"
#include "python/src/python_initializer.h"
#include "python/src/rates.h"
#include "python/src/text_caster.h"

namespace embertable::python {
namespace {

/// Maximum number of rows of a tile.
constexpr std::int64_t kMostRows = 16;

/// What a rule's function receives. The arrays are the function's during the call.
struct PythonTile {
  nb::object row, gradient, slots;
  double learning_rate;
  std::int64_t step;
  nb::object hyperparameters;
};

/// Names and forms of the slots of a rule.
struct SlotForm {
  std::string name;
  bool row_wise = false;
};

/// Arrays [16, dim] that a call's rows are copied to and from.
class TileArrays {
 public:
  TileArrays(std::int64_t dim, const std::vector<SlotForm>& slots) : dim_(dim) {
    add(false);
    add(false);
    for (const SlotForm& slot : slots) add(slot.row_wise);
  }

  std::int64_t dim() const noexcept { return dim_; }

  /// Returns an array's first rows: 0 is the row, 1 the gradient, slots follow.
  nb::object first(std::size_t array, std::int64_t rows) const {
    const nb::object& all = arrays_[array];
    return rows == kMostRows ? all
                             : nb::object(all[nb::slice(nb::int_(0), nb::int_(rows), nb::none())]);
  }
  float* row(std::size_t array, std::int64_t r) const { return memory_[array] + r * width_[array]; }
  std::size_t bytes(std::size_t array) const {
    return static_cast<std::size_t>(width_[array]) * sizeof(float);
  }

  /// True for an array of the shape of `rows` rows that is no part of the row or of a slot: new
  /// values that were not written. Functions with NumPy's `out` return what they have written.
  bool are_new_rows(nb::handle value, std::int64_t rows) const {
    if (!nb::isinstance(value, numpy().attr("ndarray")) ||
        !value.attr("shape").equal(first(0, rows).attr("shape")))
      return false;
    for (std::size_t array = 0; array < arrays_.size(); ++array)
      if (array != 1 && nb::cast<bool>(numpy().attr("may_share_memory")(value, arrays_[array])))
        return false;
    return true;
  }

  /// True if nobody else has kept one of the arrays.
  bool is_free() const {
    for (const nb::object& array : arrays_)
      if (Py_REFCNT(array.ptr()) != 1) return false;
    return true;
  }

 private:
  void add(bool row_wise) {
    arrays_.push_back(new_floats(row_wise ? Shape{kMostRows} : Shape{kMostRows, dim_}));
    memory_.push_back(WritableArray(arrays_.back(), "a tile").span().data());
    width_.push_back(row_wise ? 1 : dim_);
  }

  std::int64_t dim_;
  std::vector<nb::object> arrays_;
  std::vector<float*> memory_;
  std::vector<std::int64_t> width_;
};

/// A function of Python's that steps tiles. Called on any thread, by several at once.
class PythonRule {
 public:
  PythonRule(CallbackPtr function, std::vector<SlotForm> slots, nb::object hyperparameters)
      : function_(std::move(function)),
        slots_(std::move(slots)),
        hyperparameters_(std::make_shared<Callback>(std::move(hyperparameters))) {}
  ~PythonRule() {
    if (!Py_IsInitialized()) {
      for (std::unique_ptr<TileArrays>& arrays : free_) static_cast<void>(arrays.release());
      return;
    }
    const WithGil gil;
    free_.clear();
  }
  PythonRule(const PythonRule&) = delete;
  PythonRule& operator=(const PythonRule&) = delete;

  /// Takes the GIL once for all rows of the tile.
  void step(const CustomTile& tile) {
    with_gil([&] {
      std::unique_ptr<TileArrays> arrays = take(tile.dim);
      const auto rows = static_cast<std::int64_t>(tile.row.size());
      copy_in(*arrays, tile);
      call(*arrays, rows, tile.step);
      copy_out(*arrays, tile);
      if (arrays->is_free()) free_.push_back(std::move(arrays));
    });
  }

 private:
  /// Throws because the function has put a slot there that the rule does not have, or removed one.
  [[noreturn]] void refuse_slots(const nb::dict& slots) const {
    std::string names;
    for (const SlotForm& slot : slots_) names += (names.empty() ? "'" : ", '") + slot.name + "'";
    throw KeyError("tile.slots of a custom rule must have the rule's slots, " +
                   (names.empty() ? "none" : names) + "; got " +
                   text(slots.attr("keys")().attr("__repr__")()));
  }

  void call(const TileArrays& arrays, std::int64_t rows, const CustomStep& step) {
    nb::dict slots;
    for (std::size_t s = 0; s < slots_.size(); ++s)
      slots[slots_[s].name.c_str()] = arrays.first(2 + s, rows);
    const nb::object returned = (*function_)(
        nb::cast(PythonTile{arrays.first(0, rows), arrays.first(1, rows), slots, step.learning_rate,
                            step.number, hyperparameters_->function()}));
    if (arrays.are_new_rows(returned, rows))
      throw TypeError(
          "a custom rule must write to tile.row and tile.slots, got new rows that it returns");
    if (slots.size() != slots_.size()) refuse_slots(slots);
    // What the function put in an array's place counts as written to the array.
    for (std::size_t s = 0; s < slots_.size(); ++s) {
      const nb::object left = slots[slots_[s].name.c_str()];
      const nb::object own = arrays.first(2 + s, rows);
      if (!left.is(own)) own[nb::ellipsis()] = left;
    }
  }

  /// The GIL protects the list.
  std::unique_ptr<TileArrays> take(std::int64_t dim) {
    for (std::unique_ptr<TileArrays>& arrays : free_) {
      if (arrays->dim() != dim) continue;
      std::swap(arrays, free_.back());
      std::unique_ptr<TileArrays> taken = std::move(free_.back());
      free_.pop_back();
      return taken;
    }
    return std::make_unique<TileArrays>(dim, slots_);
  }

  void copy_in(const TileArrays& arrays, const CustomTile& tile) const {
    for (std::size_t r = 0; r < tile.row.size(); ++r) {
      std::memcpy(arrays.row(0, r), tile.row[r], arrays.bytes(0));
      std::memcpy(arrays.row(1, r), tile.gradient[r], arrays.bytes(1));
      for (std::size_t s = 0; s < slots_.size(); ++s)
        std::memcpy(arrays.row(2 + s, r), tile.slot[s][r], arrays.bytes(2 + s));
    }
  }
  void copy_out(const TileArrays& arrays, const CustomTile& tile) const {
    for (std::size_t r = 0; r < tile.row.size(); ++r) {
      std::memcpy(tile.row[r], arrays.row(0, r), arrays.bytes(0));
      for (std::size_t s = 0; s < slots_.size(); ++s)
        std::memcpy(tile.slot[s][r], arrays.row(2 + s, r), arrays.bytes(2 + s));
    }
  }

  CallbackPtr function_;
  std::vector<SlotForm> slots_;
  CallbackPtr hyperparameters_;  ///< a mapping, which any thread may free
  std::vector<std::unique_ptr<TileArrays>> free_;
};

Initializer first_value(nb::handle value, const std::string& slot) {
  if (const PythonInitializer* given = nullptr; nb::try_cast(value, given) && given)
    return given->value;
  return Initializer::constant(
      static_cast<float>(number(value, ("the first value of slot '" + slot + "'").c_str())));
}

nb::dict dict_of(nb::handle given, const char* what) {
  nb::dict copy;
  if (given.is_none()) return copy;
  if (!PyDict_Check(given.ptr()))
    throw TypeError(std::string(what) + " must be a dict, got " + type_text(given));
  copy.update(nb::borrow<nb::dict>(given));
  return copy;
}

std::vector<std::string> names_of(nb::handle given, const char* what) {
  std::vector<std::string> names;
  if (PyUnicode_Check(given.ptr()))
    throw TypeError(std::string(what) + " must be a list of names, got " + type_text(given));
  for (const nb::handle name : given) names.push_back(utf8(name, what));
  return names;
}

PythonOptimizer custom(nb::handle function, nb::handle learning_rate, const std::string& name,
                       nb::handle slots, nb::handle row_wise, nb::handle hyperparameters,
                       bool steps_every_row, const nb::kwargs& options) {
  nb::dict left;
  left.update(options);
  CommonOptions common(left);
  for (const auto [key, value] : left)
    throw TypeError("custom: there is no argument '" + text(key) + "'");
  CustomRule rule;
  rule.name = name;
  rule.steps_every_row = steps_every_row;
  const auto row_wise_names = names_of(row_wise, "row_wise");
  std::vector<SlotForm> forms;
  nb::list first_values;
  for (const auto [slot, first] : dict_of(slots, "slots")) {
    forms.push_back({utf8(slot, "the name of a slot"), false});
    const std::string& of = forms.back().name;
    forms.back().row_wise =
        std::find(row_wise_names.begin(), row_wise_names.end(), of) != row_wise_names.end();
    rule.slot_names.push_back(of);
    rule.slot_initializers.push_back(first_value(first, of));
    first_values.append(first);
    rule.slot_dims.push_back(forms.back().row_wise ? 1 : 2);
  }
  for (const std::string& one : row_wise_names) {
    if (std::find(rule.slot_names.begin(), rule.slot_names.end(), one) == rule.slot_names.end())
      throw ValueError("row_wise must name slots, got '" + one + "'");
  }
  nb::dict numbers;
  for (const auto [key, value] : dict_of(hyperparameters, "hyperparameters")) {
    const std::string of = utf8(key, "the name of a hyperparameter");
    rule.hyperparameters.emplace_back(of, number(value, of.c_str()));
    numbers[key] = nb::float_(static_cast<double>(static_cast<float>(number(value, of.c_str()))));
  }
  const CallbackPtr callback = make_callback(function, "function");
  const nb::object constants = nb::module_::import_("types").attr("MappingProxyType")(numbers);
  const auto steps = std::make_shared<PythonRule>(callback, forms, constants);
  rule.function = CustomRule::Tiles([steps](const CustomTile& tile) { steps->step(tile); });
  CallbackPtr rate;
  const LearningRate of_rate =
      rate_from(learning_rate, "learning_rate", "what a learning_rate returns", rate);
  nb::dict named;
  named.update(options);
  named["name"] = name;
  named["slots"] = dict_of(slots, "slots");
  named["row_wise"] = nb::cast(row_wise_names);
  named["hyperparameters"] = dict_of(hyperparameters, "hyperparameters");
  named["steps_every_row"] = steps_every_row;
  return PythonOptimizer{
      .value = Optimizer::custom(std::move(rule), of_rate, common.options),
      .rate = rate,
      .step_counter = common.step_counter,
      .slot_variable_creation_fn = common.creation,
      .custom_rule = callback,
      .recipe = nb::make_tuple(
          "custom", nb::make_tuple(nb::borrow(function), nb::borrow(learning_rate)), named),
      .first_values = nb::tuple(first_values)};
}

}  // namespace

void bind_custom_rules_of(nb::class_<PythonOptimizer>& type) {
  type.def_static(
      "custom", custom, nb::arg("function"), nb::arg("learning_rate") = 0.01, nb::kw_only(),
      nb::arg("name") = "custom", nb::arg("slots") = nb::none(), nb::arg("row_wise") = nb::tuple(),
      nb::arg("hyperparameters") = nb::none(), nb::arg("steps_every_row") = false,
      nb::arg("options"),
      nb::sig(
          "def custom(function: collections.abc.Callable[[CustomTile], object], learning_rate: "
          "float | collections.abc.Callable[[], float] = 0.01, *, name: str = 'custom', slots: "
          "dict[str, Initializer | float] | None = None, row_wise: collections.abc.Sequence[str] "
          "= (), hyperparameters: dict[str, float] | None = None, steps_every_row: bool = False, "
          "**options: object) -> Optimizer"),
      R"(Gives an optimizer of a rule that is written in Python: function(tile) changes the rows of a CustomTile and
their slots in place, and returns no new ones. It is called for up to 16 rows at once, on any thread, one at a time, and must not keep the
tile's arrays. How rows are grouped depends on the machine, so a row's result must depend on nothing but
that row, its slots, its gradient and the step. Gradients come summed and clipped; options are those of
every Optimizer.

learning_rate: as of every Optimizer; tiles have it as a number. name: of the rule, in messages and checkpoints. slots: by name their first value, a number or an
Initializer, at most 7. row_wise: names of the slots with one number per row instead of dim.
hyperparameters: numbers by name, at most 14. steps_every_row: rows that no id names take each step too,
with a gradient of zeros.

Raises TypeError, ValueError naming the argument. If the function raises, the step raises the same, and
the engine stays failed until a restore.

>>> def adagrad(tile):
...     tile.slots['sums'] += tile.gradient ** 2
...     tile.row -= tile.learning_rate * tile.gradient / np.sqrt(tile.slots['sums'])
>>> rule = embertable.Optimizer.custom(adagrad, 0.5, name='own_adagrad', slots={'sums': 0.1})
>>> table = embertable.TableConfig(3, 1, embertable.Initializer.zeros(), name='t')
>>> engine = embertable.Embedding(embertable.FeatureConfig(table), rule, embertable.EngineStrategy(threads=1))
>>> engine.enqueue([2])
>>> engine.apply_gradients(engine.dequeue() + 3)
>>> [f'{x:.1f}' for x in engine.read_rows('t/sums', [1, 2])[:, 0]]
['0.1', '9.1'])");
}

void bind_custom_tile(nb::module_& module) {
  nb::class_<PythonTile>(
      module, "CustomTile",
      "Up to 16 rows in one step of a rule that is written in Python, see Optimizer.custom.")
      .def("__repr__", described)
      .def_prop_rw(
          "row", [](const PythonTile& self) { return self.row; },
          [](PythonTile& self, nb::handle values) {
            if (!values.is(self.row)) self.row[nb::ellipsis()] = values;
          },
          "float32 [rows, dim], to be changed in place.")
      .def_ro("gradient", &PythonTile::gradient, "float32 [rows, dim]: summed and clipped.")
      .def_ro("slots", &PythonTile::slots,
              "By name, float32 [rows, dim], or [rows] if row-wise, to be changed in place.")
      .def_ro("learning_rate", &PythonTile::learning_rate)
      .def_ro("step", &PythonTile::step, "Number of the step, 1 for the first.")
      .def_ro("hyperparameters", &PythonTile::hyperparameters, "By name.");
}

}  // namespace embertable::python
