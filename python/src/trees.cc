#include "python/src/trees.h"

#include <nanobind/stl/vector.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "embertable/errors.h"
#include "python/src/arguments.h"
#include "python/src/arrays.h"
#include "python/src/bindings.h"
#include "python/src/dict_items.h"
#include "python/src/dlpack/exchange_api.h"
#include "python/src/text_caster.h"

namespace embertable::python {
namespace {

PyObject* per_replica_type = nullptr;  // lives as long as the process

bool is_named_tuple(nb::handle value) {
  return PyTuple_Check(value.ptr()) && nb::hasattr(value, "_fields");
}

/// True for a mapping that is no dict, such as types.MappingProxyType.
bool is_other_mapping(nb::handle value) {
  if (nb::inst_check(value) || PyObject_CheckBuffer(value.ptr()) || !PyMapping_Check(value.ptr()))
    return false;
  return nb::isinstance(value, nb::module_::import_("collections.abc").attr("Mapping"));
}

bool is_mapping(nb::handle value) { return PyDict_Check(value.ptr()) || is_other_mapping(value); }

/// True for an instance of a class that the package attrs made.
bool is_attrs(nb::handle value) { return nb::hasattr(value.type(), "__attrs_attrs__"); }

/// Returns the names of the fields of a named tuple or an attrs class.
std::vector<nb::object> fields_of(nb::handle value) {
  std::vector<nb::object> names;
  if (is_named_tuple(value)) {
    for (const nb::handle field : value.attr("_fields")) names.push_back(nb::borrow(field));
  } else {
    for (const nb::handle field : value.type().attr("__attrs_attrs__"))
      names.push_back(field.attr("name"));
  }
  return names;
}

/// `leaf`: a leaf is expected, so that anything but Python's own containers is one.
Structure::Kind kind_of(nb::handle value, Lists lists, bool leaf) {
  using Kind = Structure::Kind;
  PyObject* const object = value.ptr();
  if (PyDict_Check(object)) return Kind::kMap;
  if (!PyList_Check(object) && !PyTuple_Check(object)) {
    if (leaf || nb::inst_check(value)) return Kind::kLeaf;
    if (is_other_mapping(value)) return Kind::kMap;
    return is_attrs(value) ? Kind::kNamedTuple : Kind::kLeaf;
  }
  if (is_per_replica(value)) throw TypeError("a PerReplica must not hold a PerReplica");
  if (is_named_tuple(value)) return Kind::kNamedTuple;
  if (lists == Lists::kOfNumbersAreLeaves && is_list_of_numbers(value)) return Kind::kLeaf;
  return PyList_Check(object) ? Kind::kList : Kind::kTuple;
}

/// Maximum number of containers within each other. A container that contains itself has more.
constexpr int kMostLevels = 256;

/// Name of the structure of a mapping whose keys are not all text. Its children have the order of
/// the sorted keys, which is not that of their texts.
constexpr const char* kOrderedMap = "dict";

bool is_ordered_map(const Structure& structure) {
  return structure.kind() == Structure::Kind::kNamedTuple && structure.name() == kOrderedMap;
}

std::string key_text(nb::handle key) {
  if (PyUnicode_Check(key.ptr())) return utf8(key, "a key of a dict in a tree");
  return text(key);
}

/// The content of a container in flatten order. Other threads may change the container meanwhile,
/// so all lists are of one reading.
struct Content {
  std::vector<std::string> keys;  ///< keys of a mapping or names of fields; else none
  std::vector<nb::object> items;
  std::vector<nb::object> key_objects;  ///< keys of a mapping
  bool keys_are_text = true;
};

/// Returns the keys of a mapping in Python's order. Throws TypeError for keys without one.
nb::list sorted_keys(nb::handle mapping) {
  nb::list keys = nb::list(nb::module_::import_("builtins").attr("list")(mapping));
  try {
    keys.attr("sort")();
  } catch (const nb::python_error& error) {
    if (!error.matches(PyExc_TypeError)) throw;
    throw TypeError("the keys of a mapping in a tree must have an order, got " +
                    text(nb::repr(keys)));
  }
  return keys;
}

Content content_of_mapping(nb::handle mapping) {
  Content content;
  for (const nb::handle key : sorted_keys(mapping)) {
    content.keys_are_text = content.keys_are_text && PyUnicode_Check(key.ptr());
    content.keys.push_back(key_text(key));
    content.items.push_back(mapping[key]);
    content.key_objects.push_back(nb::borrow(key));
  }
  return content;
}

Content content_of(nb::handle value, Structure::Kind kind) {
  if (kind == Structure::Kind::kMap) return content_of_mapping(value);
  Content content;
  if (kind == Structure::Kind::kNamedTuple && !PyTuple_Check(value.ptr())) {
    for (const nb::object& field : fields_of(value)) {
      content.items.push_back(nb::getattr(value, field));
      content.keys.push_back(key_text(field));
    }
    return content;
  }
  for (const nb::handle item : value) content.items.push_back(nb::borrow(item));
  if (kind != Structure::Kind::kNamedTuple) return content;
  for (const nb::object& field : fields_of(value)) content.keys.push_back(key_text(field));
  if (content.keys.size() != content.items.size())
    throw TypeError("a " + type_text(value) + " must have one item for each of its _fields");
  return content;
}

/// Expected structure of a node and its children; null if none is expected.
using Expected = const Structure*;

/// Where a leaf is expected, a list of numbers is a leaf; where a branch is expected, it is a
/// branch.
Structure::Kind kind_at(nb::handle value, Lists lists, Expected expected) {
  const bool leaf = expected && expected->kind() == Structure::Kind::kLeaf;
  return kind_of(value, expected && !leaf ? Lists::kBranches : lists, leaf);
}

Expected child_of(Expected parent, const std::string& key, std::size_t index) {
  if (!parent) return nullptr;
  const auto& keys = parent->keys();
  const bool is_map = parent->kind() == Structure::Kind::kMap;
  const auto at =
      is_map ? static_cast<std::size_t>(std::find(keys.begin(), keys.end(), key) - keys.begin())
             : index;
  return at < parent->children().size() ? &parent->children()[at] : nullptr;
}

Structure branch_of(nb::handle value, Structure::Kind kind, std::vector<std::string> keys,
                    bool keys_are_text, std::vector<Structure> forms) {
  if (kind == Structure::Kind::kList) return Structure::list(std::move(forms));
  if (kind == Structure::Kind::kTuple) return Structure::tuple(std::move(forms));
  std::vector<Structure::Member> members;
  for (std::size_t i = 0; i < keys.size(); ++i)
    members.emplace_back(std::move(keys[i]), std::move(forms[i]));
  if (kind == Structure::Kind::kMap)
    return keys_are_text ? Structure::map(std::move(members))
                         : Structure::named_tuple(kOrderedMap, std::move(members));
  return Structure::named_tuple(type_text(value), std::move(members));
}

/// Throws TypeError where texts are given for keys of other types, or the other way round, which a
/// description of both structures would show alike.
void check_key_types(const Content& content, const Structure& expected) {
  const bool expects_texts = expected.kind() == Structure::Kind::kMap;
  if ((!expects_texts && !is_ordered_map(expected)) || expects_texts == content.keys_are_text)
    return;
  std::string keys;
  for (const std::string& key : expected.keys())
    keys += (keys.empty() ? "" : ", ") + (expects_texts ? "'" + key + "'" : key);
  throw TypeError("the keys of a mapping must be [" + keys + "], got " +
                  text(nb::repr(nb::cast(content.key_objects))) +
                  (expects_texts ? "; they are texts in the configuration"
                                 : "; they are no texts in the configuration"));
}

Structure walk(nb::handle value, Lists lists, Expected expected, int level,
               std::vector<nb::object>& leaves) {
  const Structure::Kind kind = kind_at(value, lists, expected);
  if (kind == Structure::Kind::kLeaf) {
    leaves.push_back(nb::borrow(value));
    return {};
  }
  if (level == kMostLevels) {
    throw ValueError("a tree must have at most " + std::to_string(kMostLevels) +
                     " containers within each other; does one contain itself?");
  }
  Content content = content_of(value, kind);
  if (kind == Structure::Kind::kMap && expected && is_ordered_map(*expected) &&
      content.keys != expected->keys())
    throw ValueError("the keys of a mapping must be those of " + expected->to_string() + ", got " +
                     text(nb::repr(nb::cast(content.key_objects))));
  if (kind == Structure::Kind::kMap && expected) check_key_types(content, *expected);
  std::vector<Structure> forms;
  for (std::size_t i = 0; i < content.items.size(); ++i) {
    const Expected child = child_of(expected, i < content.keys.size() ? content.keys[i] : "", i);
    forms.push_back(walk(content.items[i], lists, child, level + 1, leaves));
  }
  return branch_of(value, kind, std::move(content.keys), content.keys_are_text, std::move(forms));
}

/// Returns the item of a mapping, or null.
nb::object item_of(nb::handle mapping, const std::string& key) {
  if (!PyDict_Check(mapping.ptr())) {
    const nb::object name = decoded(key);
    return nb::cast<bool>(mapping.attr("__contains__")(name)) ? nb::object(mapping[name])
                                                              : nb::object();
  }
  PyObject* const found = PyDict_GetItemWithError(mapping.ptr(), decoded(key).ptr());
  if (!found && PyErr_Occurred()) throw nb::python_error();
  return nb::borrow(found);
}

bool has_keys(nb::handle value, const Structure& expected) {
  const auto& keys = expected.keys();
  if (PyObject_Size(value.ptr()) != static_cast<Py_ssize_t>(keys.size())) return false;
  return std::all_of(keys.begin(), keys.end(),
                     [&](const std::string& key) { return item_of(value, key).is_valid(); });
}

bool has_fields(nb::handle value, const Structure& expected) {
  const std::vector<nb::object> fields = fields_of(value);
  const auto& keys = expected.keys();
  if (fields.size() != keys.size() || type_text(value) != expected.name()) return false;
  for (std::size_t i = 0; i < keys.size(); ++i)
    if (key_text(fields[i]) != keys[i]) return false;
  return true;
}

/// Returns false as soon as the value's form differs.
bool collect(nb::handle value, Lists lists, const Structure& expected,
             std::vector<nb::object>& leaves) {
  const Structure::Kind kind = kind_at(value, lists, &expected);
  if (kind != expected.kind() || is_ordered_map(expected)) return false;
  if (kind == Structure::Kind::kLeaf) {
    leaves.push_back(nb::borrow(value));
    return true;
  }
  const auto& forms = expected.children();
  if (kind == Structure::Kind::kMap) {
    if (!has_keys(value, expected)) return false;
    for (std::size_t i = 0; i < forms.size(); ++i)
      if (!collect(value[decoded(expected.keys()[i])], lists, forms[i], leaves)) return false;
    return true;
  }
  if (kind == Structure::Kind::kNamedTuple) {
    if (!has_fields(value, expected)) return false;
    const std::vector<nb::object> items = content_of(value, kind).items;
    for (std::size_t i = 0; i < forms.size(); ++i)
      if (!collect(items[i], lists, forms[i], leaves)) return false;
    return true;
  }
  if (nb::len(value) != forms.size()) return false;
  for (std::size_t i = 0; i < forms.size(); ++i)
    if (!collect(value[i], lists, forms[i], leaves)) return false;
  return true;
}

/// Returns the items of a container that is in the place of an expected one; none if it does not
/// fit.
std::optional<std::vector<nb::object>> items_in_place_of(const Structure& expected,
                                                         nb::handle value) {
  using Kind = Structure::Kind;
  const bool is_map = is_mapping(value),
             expects_map = expected.kind() == Kind::kMap || is_ordered_map(expected);
  const bool is_record = is_named_tuple(value) || is_attrs(value);
  const bool is_sequence = PyList_Check(value.ptr()) || PyTuple_Check(value.ptr());
  if (!is_map && !is_record && !is_sequence) return std::nullopt;
  Content content = content_of(value, is_map      ? Kind::kMap
                                      : is_record ? Kind::kNamedTuple
                                                  : Kind::kList);
  const bool has_names = is_map || is_record;
  if (content.items.size() != expected.children().size() ||
      (has_names && (is_map != expects_map || content.keys != expected.keys())))
    return std::nullopt;
  return std::move(content.items);
}

void collect_in_places_of(const Structure& expected, nb::handle value, std::string_view what,
                          std::vector<nb::object>& leaves) {
  if (expected.kind() == Structure::Kind::kLeaf) {
    leaves.push_back(nb::borrow(value));
    return;
  }
  const auto items = items_in_place_of(expected, value);
  if (!items) {
    throw ValueError(std::string(what) + ": must be of the form " + expected.to_string() +
                     ", got " + text(nb::repr(value)));
  }
  for (std::size_t i = 0; i < items->size(); ++i)
    collect_in_places_of(expected.children()[i], (*items)[i], what, leaves);
}

/// Returns a mapping of the same class and order with other items, or a dict if the class makes
/// none of a dict.
nb::object mapping_like(nb::handle like, const nb::dict& items) {
  if (PyDict_Check(like.ptr())) {
    nb::object packed = like.attr("copy")();  // keeps the order of insertion and the class
    for (const auto [key, item] : items) packed[key] = item;
    return packed;
  }
  nb::dict ordered;
  for (const nb::handle key : like) ordered[key] = items[key];
  try {
    return like.type()(ordered);
  } catch (const nb::python_error& error) {
    if (!error.matches(PyExc_TypeError)) throw;
    return ordered;
  }
}

/// Returns a named tuple or an instance of an attrs class with other items.
nb::object record_like(nb::handle like, const nb::list& items) {
  if (is_named_tuple(like)) return like.type().attr("_make")(items);
  nb::dict arguments;
  const std::vector<nb::object> names = fields_of(like);
  for (std::size_t i = 0; i < names.size(); ++i) {
    // attrs takes the argument `x` for a field `_x`
    arguments[nb::str(names[i]).attr("lstrip")("_")] = items[i];
  }
  return like.type()(**nb::borrow<nb::kwargs>(arguments));
}

/// Takes leaves from `next` on, and advances it.
nb::object pack_from(nb::handle like, const Structure& structure,
                     std::span<const nb::object>& next) {
  const Structure::Kind kind = structure.kind();
  const auto& forms = structure.children();
  if (kind == Structure::Kind::kLeaf) {
    const nb::object leaf = next.front();
    next = next.subspan(1);
    return leaf;
  }
  if (kind == Structure::Kind::kMap || is_ordered_map(structure)) {
    nb::dict items;
    const nb::list ordered = kind == Structure::Kind::kMap ? nb::list() : sorted_keys(like);
    for (std::size_t i = 0; i < forms.size(); ++i) {
      const nb::object key =
          kind == Structure::Kind::kMap ? decoded(structure.keys()[i]) : nb::object(ordered[i]);
      items[key] = pack_from(like[key], forms[i], next);
    }
    return mapping_like(like, items);
  }
  nb::list items;
  if (kind == Structure::Kind::kNamedTuple) {
    const std::vector<nb::object> parts = content_of(like, kind).items;
    for (std::size_t i = 0; i < forms.size(); ++i)
      items.append(pack_from(parts[i], forms[i], next));
    return record_like(like, items);
  }
  for (std::size_t i = 0; i < forms.size(); ++i) {
    const bool leaf = forms[i].kind() == Structure::Kind::kLeaf;  // then `like` is not needed
    items.append(pack_from(leaf ? nb::object() : nb::object(like[i]), forms[i], next));
  }
  return kind == Structure::Kind::kTuple ? nb::object(nb::tuple(items)) : items;
}

/// True for a value of TensorFlow that has one part for each replica.
bool is_distributed(nb::handle value) {
  if (nb::inst_check(value) || PyObject_CheckBuffer(value.ptr()) || dlpack::api_of(value))
    return false;  // usual leaves
  return type_text(value).ends_with("PerReplica") && nb::hasattr(value, "values");
}

bool is_any_per_replica(nb::handle value) { return is_per_replica(value) || is_distributed(value); }

/// Returns the parts of a PerReplica, ours or TensorFlow's.
std::vector<nb::object> parts_of(nb::handle value) {
  std::vector<nb::object> parts;
  const nb::object all =
      is_per_replica(value) ? nb::borrow(value) : nb::object(value.attr("values"));
  for (const nb::handle part : all) parts.push_back(nb::borrow(part));
  return parts;
}

/// True for a list or tuple of numbers, which has no tree in it.
bool starts_with_number(nb::handle sequence) {
  if (nb::len(sequence) == 0) return true;
  const nb::object first = sequence[0];
  return PyNumber_Check(first.ptr()) && !nb::hasattr(first, "__len__");
}

/// Returns how many parts the values of Python's own containers have, 0 if none of them is a
/// PerReplica. Throws ValueError if they have different numbers.
std::size_t replicas_within(nb::handle value, int level) {
  if (is_any_per_replica(value)) return parts_of(value).size();
  const bool is_dict = PyDict_Check(value.ptr());
  const bool is_sequence = PyList_Check(value.ptr()) || PyTuple_Check(value.ptr());
  if ((!is_dict && !is_sequence) || level == kMostLevels) return 0;
  if (is_sequence && starts_with_number(value)) return 0;
  std::size_t replicas = 0;
  const nb::object items = is_dict ? nb::object(value.attr("values")()) : nb::borrow(value);
  for (const nb::handle item : items) {
    const std::size_t parts = replicas_within(item, level + 1);
    if (parts != 0 && replicas != 0 && parts != replicas)
      throw ValueError("every PerReplica of a tree must have as many parts, got " +
                       std::to_string(replicas) + " and " + std::to_string(parts));
    replicas = std::max(replicas, parts);
  }
  return replicas;
}

/// Returns a tree of one replica's parts. Requires: `replicas_within` was not 0.
nb::object part_of_tree(nb::handle value, std::size_t replica, int level) {
  if (is_any_per_replica(value)) return parts_of(value)[replica];
  if (level == kMostLevels) return nb::borrow(value);
  if (PyDict_Check(value.ptr())) {
    nb::dict items;
    for (const auto& [key, item] : items_of(value))
      items[key] = part_of_tree(item, replica, level + 1);
    return mapping_like(value, items);
  }
  const bool is_sequence = PyList_Check(value.ptr()) || PyTuple_Check(value.ptr());
  if (!is_sequence || starts_with_number(value)) return nb::borrow(value);
  nb::list items;
  for (const nb::handle item : value) items.append(part_of_tree(item, replica, level + 1));
  if (is_named_tuple(value)) return record_like(value, items);
  return PyTuple_Check(value.ptr()) ? nb::object(nb::tuple(items)) : items;
}

}  // namespace

Tree to_tree(nb::handle value, Lists lists) {
  std::vector<nb::object> leaves;
  Structure structure = walk(value, lists, nullptr, 0, leaves);
  return Tree(std::move(structure), std::move(leaves));
}

Tree to_tree(nb::handle value, Lists lists, const Structure& expected) {
  std::vector<nb::object> leaves;
  leaves.reserve(static_cast<std::size_t>(expected.num_leaves()));
  if (collect(value, lists, expected, leaves)) return Tree(expected, std::move(leaves));
  leaves.clear();
  Structure structure = walk(value, lists, &expected, 0, leaves);
  return Tree(std::move(structure), std::move(leaves));
}

bool is_leaf(nb::handle value) {
  return kind_of(value, Lists::kBranches, false) == Structure::Kind::kLeaf;
}

std::vector<nb::object> leaves_in_places_of(nb::handle value, const Structure& expected,
                                            std::string_view what) {
  std::vector<nb::object> leaves;
  collect_in_places_of(expected, value, what, leaves);
  return leaves;
}

nb::object pack(nb::handle like, const Structure& structure, std::span<const nb::object> leaves) {
  return pack_from(like, structure, leaves);
}

bool is_per_replica(nb::handle value) {
  return PyObject_TypeCheck(value.ptr(), reinterpret_cast<PyTypeObject*>(per_replica_type)) != 0;
}

std::vector<nb::object> by_replica(nb::handle value) {
  if (is_any_per_replica(value)) return parts_of(value);
  const std::size_t replicas = replicas_within(value, 0);
  if (replicas == 0) return {nb::borrow(value)};
  std::vector<nb::object> trees;
  for (std::size_t r = 0; r < replicas; ++r) trees.push_back(part_of_tree(value, r, 0));
  return trees;
}

nb::object per_replica(const std::vector<nb::object>& trees) {
  if (trees.size() == 1) return trees.front();
  nb::list items;
  for (const nb::object& tree : trees) items.append(tree);
  return nb::borrow(per_replica_type)(items);
}

void bind_trees(nb::module_& module) {
  nb::dict members;
  members["__doc__"] =
      "One value for each replica, in the order of the replicas: what a call for several replicas\n"
      "takes and gives, a PerReplica of trees. A tree of PerReplicas is taken too, and what it "
      "has\n"
      "besides is for every replica.\n\n"
      ">>> embertable.PerReplica([[0, 1], [2, 3]])[1]\n[2, 3]";
  members["__module__"] = "embertable";
  members["__slots__"] = nb::tuple();
  const nb::object builtins = nb::module_::import_("builtins");
  members["values"] = builtins.attr("property")(builtins.attr("tuple"), nb::none(), nb::none(),
                                                "The values as a tuple, TensorFlow's name.");
  const nb::object type = nb::borrow(reinterpret_cast<PyObject*>(&PyType_Type));
  nb::object made =
      type("PerReplica", nb::make_tuple(nb::borrow(reinterpret_cast<PyObject*>(&PyTuple_Type))),
           members);
  module.attr("PerReplica") = made;
  per_replica_type = made.release().ptr();
}

}  // namespace embertable::python
