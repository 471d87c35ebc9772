// Binds maps from text or integer keys to rows.
#include "embertable/id_map.h"

#include <nanobind/operators.h>
#include <nanobind/stl/optional.h>

#include <algorithm>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "embertable/errors.h"
#include "python/src/argument_arrays.h"
#include "python/src/arguments.h"
#include "python/src/arrays.h"
#include "python/src/bindings.h"
#include "python/src/classes/explained_calls.h"
#include "python/src/text_caster.h"

namespace embertable::python {
namespace {

KeyKind kind_of(const std::string& name) {
  if (name == "integer") return KeyKind::kInteger;
  if (name == "string") return KeyKind::kString;
  throw ValueError("kind must be 'integer' or 'string', got '" + name + "'");
}

std::string name_of(KeyKind kind) { return kind == KeyKind::kInteger ? "integer" : "string"; }

RowOrder order_of(const std::string& name) {
  if (name == "first_seen") return RowOrder::kFirstSeen;
  if (name == "most_frequent") return RowOrder::kMostFrequent;
  throw ValueError("row_order must be 'first_seen' or 'most_frequent', got '" + name + "'");
}

/// Returns a view that lives as long as the text, or as `made`, to which the bytes of a text with
/// surrogates are added: `key_of` makes such texts of keys that are no UTF-8.
std::string_view text_of(nb::handle key, std::deque<std::string>& made) {
  Py_ssize_t size = 0;
  if (PyBytes_Check(key.ptr()))
    return {PyBytes_AsString(key.ptr()), static_cast<std::size_t>(PyBytes_Size(key.ptr()))};
  if (!PyUnicode_Check(key.ptr())) throw TypeError("a key must be text, got " + type_text(key));
  const char* text = PyUnicode_AsUTF8AndSize(key.ptr(), &size);
  if (text) return {text, static_cast<std::size_t>(size)};
  PyErr_Clear();
  return made.emplace_back(foreign_text(key, "a key"));
}

/// The keys of a sequence, in the kind of the map.
struct Texts {
  nb::object kept;  ///< a list, whose items the views are of
  std::deque<std::string> made;
  std::vector<std::string_view> views;
};

void refuse_masked(nb::handle keys) {
  if (has_masked(keys)) throw ValueError("keys must have no masked elements, got a masked array");
}

Texts texts_of(nb::handle keys) {
  const bool is_array = nb::hasattr(keys, "tolist");
  Texts texts{is_array ? keys.attr("tolist")() : nb::object(nb::list(nb::borrow(keys))), {}, {}};
  if (!PyList_Check(texts.kept.ptr())) texts.kept = nb::list(nb::make_tuple(texts.kept));
  for (const nb::handle key : texts.kept) texts.views.push_back(text_of(key, texts.made));
  return texts;
}

/// Returns an array of objects: the keys of an array, or of lists within each other.
nb::object array_of_keys(nb::handle keys) {
  const bool has_shape = nb::hasattr(keys, "__array__") || PyList_Check(keys.ptr());
  if (is_text(keys) && !has_shape)
    throw TypeError("keys must be an array or list, got " + type_text(keys) +
                    ": row takes a single key");
  refuse_masked(keys);
  const nb::object all = has_shape ? nb::borrow(keys) : nb::object(nb::list(nb::borrow(keys)));
  try {
    return numpy().attr("asarray")(all, nb::arg("dtype") = "object");
  } catch (nb::python_error&) {
    refuse_recorded(keys, "keys");
    throw;
  }
}

nb::object rows(const IdMap& self, nb::handle keys) {
  if (self.kind() == KeyKind::kString) {
    const nb::object array = array_of_keys(keys);
    const Texts texts = texts_of(array.attr("ravel")());
    const nb::object out = new_integers(shape(array.attr("shape"), "the shape of keys"));
    const auto memory = IntegerArray(out, "rows").span();
    self.rows(texts.views,
              {static_cast<std::int64_t*>(const_cast<void*>(memory.data())), texts.views.size()});
    return out;
  }
  const IntegerArray array(keys, "the keys of an integer map");
  const std::vector<std::int64_t> numbers = copied(array);
  const nb::object out = new_integers(array.shape());
  const auto memory = IntegerArray(out, "rows").span();
  self.rows(numbers,
            {static_cast<std::int64_t*>(const_cast<void*>(memory.data())), numbers.size()});
  return out;
}

std::int64_t row(const IdMap& self, nb::handle key) {
  std::deque<std::string> made;
  return is_text(key) ? self.row(text_of(key, made)) : self.row(integer(key, "a key"));
}

std::optional<std::int64_t> find(const IdMap& self, nb::handle key) {
  std::deque<std::string> made;
  return is_text(key) ? self.find(text_of(key, made)) : self.find(integer(key, "a key"));
}

nb::object key_of(const IdMap& self, nb::handle row) {
  const std::int64_t number = integer(row, "row");
  if (self.kind() == KeyKind::kInteger) return nb::int_(self.integer_key(number));
  return decoded(self.string_key(number));
}

/// Returns the keys of many rows, in an array of their shape.
nb::object keys_of(const IdMap& self, nb::handle rows) {
  const IntegerArray array(rows, "rows");
  const std::vector<std::int64_t> numbers = copied(array);
  if (self.kind() == KeyKind::kInteger) {
    std::vector<std::int64_t> keys;
    for (const std::int64_t row : numbers) keys.push_back(self.integer_key(row));
    const nb::object out = new_integers(array.shape());
    const auto memory = IntegerArray(out, "keys").span();
    std::ranges::copy(keys, static_cast<std::int64_t*>(const_cast<void*>(memory.data())));
    return out;
  }
  const nb::object flat = numpy().attr("empty")(numbers.size(), "object");
  for (std::size_t i = 0; i < numbers.size(); ++i)
    flat[nb::int_(i)] = decoded(self.string_key(numbers[i]));
  return flat.attr("reshape")(to_python(array.shape()));
}

nb::iterator iterator_of(const IdMap& self) {
  const nb::object all = keys_of(self, numpy().attr("arange")(self.num_keys()));
  return nb::iter(all.attr("tolist")());
}

nb::bytes bytes_of(const IdMap& self) {
  const std::string bytes = self.to_bytes();
  return nb::bytes(bytes.data(), bytes.size());
}

IdMap from_bytes(const nb::bytes& bytes) {
  return IdMap::from_bytes({bytes.c_str(), bytes.size()});
}

void add(IdMapBuilder& self, nb::handle keys, nb::handle count) {
  const std::int64_t times = integer(count, "count");
  std::deque<std::string> made;
  if (is_text(keys)) return self.add(text_of(keys, made), times);
  if (PyIndex_Check(keys.ptr()) && !nb::hasattr(keys, "__len__"))
    return self.add(integer(keys, "a key"), times);
  if (times != 1) throw ValueError("count is for one key");
  const bool is_array = nb::hasattr(keys, "dtype");
  const nb::object list = is_array ? nb::borrow(keys) : nb::object(nb::list(nb::borrow(keys)));
  if (nb::len(list) == 0) return;
  refuse_masked(list);
  if (is_text(list[0])) {
    self.add(texts_of(list).views);
  } else {
    self.add(copied(IntegerArray(list, "keys")));
  }
}

IdMap build_id_map(const IdMapBuilder& self, nb::handle min_count, nb::handle max_keys,
                   nb::handle out_of_vocabulary_rows, const std::string& row_order) {
  IdMapOptions options;
  options.min_count = integer(min_count, "min_count");
  options.max_keys = integer(max_keys, "max_keys");
  options.out_of_vocabulary_rows = integer(out_of_vocabulary_rows, "out_of_vocabulary_rows");
  options.row_order = order_of(row_order);
  return self.build(options);
}

void bind_map(nb::module_& module) {
  nb::class_<IdMap>(
      module, "IdMap",
      R"(Which row each key has, with rows for keys that are not there. Made by an IdMapBuilder; it pickles and copies.

>>> builder = embertable.IdMapBuilder("integer")
>>> builder.add([70, 80])
>>> 70 in builder.build()
True)")
      .def_static(
          "hashed",
          [](const std::string& kind, nb::handle num_rows) {
            return IdMap::hashed(kind_of(kind), integer(num_rows, "num_rows"));
          },
          nb::arg("kind"), nb::arg("num_rows"),
          R"(Makes a map without keys: each key has the row that its hash gives.

kind: "integer" or "string"; num_rows: >= 1. Raises ValueError.

>>> embertable.IdMap.hashed("string", 10).num_rows
10)")
      .def_prop_ro("kind", [](const IdMap& self) { return name_of(self.kind()); })
      .def_prop_ro("num_keys", &IdMap::num_keys)
      .def_prop_ro("out_of_vocabulary_rows", &IdMap::out_of_vocabulary_rows)
      .def_prop_ro("num_rows", &IdMap::num_rows, "vocabulary_size of the table.")
      .def("row", row, nb::arg("key"),
           R"(Gives the row of a key: its own, or an out-of-vocabulary row by its hash.

key: an int, str or bytes, of the map's kind. Raises TypeError for another kind, KeyError for an unknown key
where there are no out-of-vocabulary rows.

>>> builder = embertable.IdMapBuilder("string")
>>> builder.add(["a", "b", "a"])
>>> builder.build().row("b")
1)")
      .def("rows", rows, nb::arg("keys"), R"(Gives the rows of many keys, int64 of their shape.

keys: an array or list of the map's kind. Raises what row raises, and TypeError for a single text.

>>> builder = embertable.IdMapBuilder("string")
>>> builder.add(["a", "b", "a"])
>>> builder.build().rows(["b", "a"]).tolist()
[1, 0])")
      .def("find", find, nb::arg("key"), R"(Gives a key's own row, or None.

key: an int, str or bytes. Raises TypeError for another kind.

>>> builder = embertable.IdMapBuilder("string")
>>> builder.add(["a", "b", "a"])
>>> builder.build().find("c") is None
True)")
      .def("key", key_of, nb::arg("row"), R"(Gives the key of a row.

row: its number. Raises IndexError outside of the keys' rows.

>>> builder = embertable.IdMapBuilder("string")
>>> builder.add(["a", "b", "a"])
>>> builder.build().key(1)
'b')")
      .def(
          "keys_of", keys_of, nb::arg("rows"),
          R"(Gives the keys of many rows, an array of their shape: int64, or objects that are texts.

rows: integers. Iterating over the map gives all keys, in the order of their rows. Raises IndexError
outside of the keys' rows, TypeError for what are no integers.

>>> builder = embertable.IdMapBuilder("string")
>>> builder.add(["a", "b", "a"])
>>> id_map = builder.build()
>>> id_map.keys_of([1, 0, 1]).tolist(), list(id_map)
(['b', 'a', 'b'], ['a', 'b']))")
      .def("to_bytes", bytes_of,
           R"(Gives the map as bytes, which from_bytes takes.

>>> builder = embertable.IdMapBuilder("string")
>>> builder.add(["a", "b", "a"])
>>> embertable.IdMap.from_bytes(builder.build().to_bytes()).num_keys
2)")
      .def_static("from_bytes", from_bytes, nb::arg("bytes"),
                  R"(Makes a map of what to_bytes has given.

bytes: of to_bytes. Raises DataLossError for others.

>>> builder = embertable.IdMapBuilder("string")
>>> builder.add(["a", "b", "a"])
>>> len(embertable.IdMap.from_bytes(builder.build().to_bytes()))
2)")
      .def("__len__", &IdMap::num_keys)
      .def("__iter__", iterator_of)
      .def(
          "__contains__",
          [](const IdMap& self, nb::handle key) { return find(self, key).has_value(); },
          nb::arg("key"))
      .def("__eq__",
           [](const IdMap& self, nb::handle other) -> nb::object {
             const IdMap* right = nullptr;
             if (!nb::try_cast(other, right) || !right) return nb::borrow(Py_NotImplemented);
             return nb::bool_(self == *right);
           })
      .def("__repr__",
           [](const IdMap& self) {
             return "IdMap(" + name_of(self.kind()) + ", " + std::to_string(self.num_keys()) +
                    " keys, " + std::to_string(self.out_of_vocabulary_rows()) + " shared rows)";
           })
      .def("__getstate__", bytes_of)
      .def("__setstate__",
           [](IdMap& self, const nb::bytes& bytes) { new (&self) IdMap(from_bytes(bytes)); });
}

}  // namespace

void bind_id_map(nb::module_& module) {
  bind_map(module);
  nb::class_<IdMapBuilder>(module, "IdMapBuilder", nb::type_slots(explained_slots),
                           R"(Counts keys and makes an id map of them.

kind: "integer" or "string". Raises ValueError.

>>> embertable.IdMapBuilder("string").num_keys
0)")
      .def(
          "__init__",
          [](IdMapBuilder* self, const std::string& kind) {
            new (self) IdMapBuilder(kind_of(kind));
          },
          nb::arg("kind"))
      .def("add", add, nb::arg("keys"), nb::arg("count") = 1, R"(Counts keys.

keys: one key, or an array or list; count: how often a key that stands alone came. Raises TypeError for another kind,
ValueError for a count below 1, or of several keys.

>>> builder = embertable.IdMapBuilder("string")
>>> builder.add(["a", "b", "a"])
>>> builder.num_keys
2)")
      .def_prop_ro("num_keys", &IdMapBuilder::num_keys, "Different keys seen so far.")
      .def("build", build_id_map, nb::kw_only(), nb::arg("min_count") = 1, nb::arg("max_keys") = 0,
           nb::arg("out_of_vocabulary_rows") = 0, nb::arg("row_order") = "first_seen",
           R"(Makes a map of the keys that were counted.

min_count: keys that came less often are left out; max_keys: as many of the most frequent stay, 0: all;
out_of_vocabulary_rows: for keys that are not there; row_order: "first_seen", or "most_frequent", the
most frequent first. Raises ValueError.

>>> builder = embertable.IdMapBuilder("string")
>>> builder.add(["a", "b", "a"])
>>> builder.build(min_count=2).num_keys
1)");
}

}  // namespace embertable::python
