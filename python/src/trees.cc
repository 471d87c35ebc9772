#include "python/src/trees.h"

#include <algorithm>
#include <string>
#include <utility>

#include "embertable/errors.h"
#include "python/src/arguments.h"
#include "python/src/arrays.h"
#include "python/src/bindings.h"
#include "python/src/text_caster.h"

namespace embertable::python {
namespace {

PyObject* per_replica_type = nullptr;  // lives as long as the process

bool is_named_tuple(nb::handle value) {
  return PyTuple_Check(value.ptr()) && nb::hasattr(value, "_fields");
}

Structure::Kind kind_of(nb::handle value, Lists lists) {
  using Kind = Structure::Kind;
  PyObject* const object = value.ptr();
  if (PyDict_Check(object)) return Kind::kMap;
  if (!PyList_Check(object) && !PyTuple_Check(object)) return Kind::kLeaf;
  if (is_per_replica(value)) throw TypeError("a PerReplica holds trees, and stands in none");
  if (is_per_replica(value)) throw TypeError("a PerReplica holds trees, and stands in none");
  if (is_named_tuple(value)) return Kind::kNamedTuple;
  if (lists == Lists::kOfNumbersAreLeaves && is_list_of_numbers(value)) return Kind::kLeaf;
  return PyList_Check(object) ? Kind::kList : Kind::kTuple;
}

/// Maximum number of containers within each other. A container that contains itself has more.
constexpr int kMostLevels = 256;

std::string text_key(nb::handle key) {
  if (!PyUnicode_Check(key.ptr()))
    throw TypeError("the keys of a dict in a tree must be text, got " + type_text(key));
  return utf8(key, "a key of a dict in a tree");
}

/// The content of a container in flatten order. Other threads may change the container meanwhile,
/// so both lists are of one reading.
struct Content {
  std::vector<std::string> keys;  ///< keys of a dict or fields of a named tuple; else none
  std::vector<nb::object> items;
};

Content content_of_dict(nb::handle dict) {
  std::vector<std::pair<std::string, nb::object>> sorted;
  for (const auto [key, value] : nb::borrow<nb::dict>(dict))
    sorted.emplace_back(text_key(key), nb::borrow(key));
  std::sort(sorted.begin(), sorted.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  Content content;
  for (auto& [text, key] : sorted) {
    content.items.push_back(dict[key]);
    content.keys.push_back(std::move(text));
  }
  return content;
}

Content content_of(nb::handle value, Structure::Kind kind) {
  if (kind == Structure::Kind::kMap) return content_of_dict(value);
  Content content;
  for (const nb::handle item : value) content.items.push_back(nb::borrow(item));
  if (kind != Structure::Kind::kNamedTuple) return content;
  for (const nb::handle field : value.attr("_fields")) content.keys.push_back(text_key(field));
  if (content.keys.size() != content.items.size())
    throw TypeError("a " + type_text(value) + " must have one item for each of its _fields");
  return content;
}

/// Expected structure of a node and its children; null if none is expected.
using Expected = const Structure*;

/// Where a leaf is expected, a list of numbers is a leaf; where a branch is expected, it is a
/// branch.
Structure::Kind kind_at(nb::handle value, Lists lists, Expected expected) {
  const bool branch = expected && expected->kind() != Structure::Kind::kLeaf;
  return kind_of(value, branch ? Lists::kBranches : lists);
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
                    std::vector<Structure> forms) {
  if (kind == Structure::Kind::kList) return Structure::list(std::move(forms));
  if (kind == Structure::Kind::kTuple) return Structure::tuple(std::move(forms));
  std::vector<Structure::Member> members;
  for (std::size_t i = 0; i < keys.size(); ++i)
    members.emplace_back(std::move(keys[i]), std::move(forms[i]));
  return kind == Structure::Kind::kMap
             ? Structure::map(std::move(members))
             : Structure::named_tuple(type_text(value), std::move(members));
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
  auto [keys, items] = content_of(value, kind);
  std::vector<Structure> forms;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const Expected child = child_of(expected, i < keys.size() ? keys[i] : "", i);
    forms.push_back(walk(items[i], lists, child, level + 1, leaves));
  }
  return branch_of(value, kind, std::move(keys), std::move(forms));
}

/// Returns the item of a dict, or null.
nb::object item_of(nb::handle dict, const std::string& key) {
  PyObject* const found = PyDict_GetItemWithError(dict.ptr(), decoded(key).ptr());
  if (!found && PyErr_Occurred()) throw nb::python_error();
  return nb::borrow(found);
}

bool has_keys(nb::handle value, const Structure& expected) {
  const auto& keys = expected.keys();
  if (PyDict_Size(value.ptr()) != static_cast<Py_ssize_t>(keys.size())) return false;
  return std::all_of(keys.begin(), keys.end(),
                     [&](const std::string& key) { return item_of(value, key).is_valid(); });
}

bool has_fields(nb::handle value, const Structure& expected) {
  const nb::object fields = value.attr("_fields");
  const auto& keys = expected.keys();
  if (nb::len(fields) != keys.size() || type_text(value) != expected.name()) return false;
  for (std::size_t i = 0; i < keys.size(); ++i)
    if (text_key(fields[i]) != keys[i]) return false;
  return true;
}

/// Returns false as soon as the value's form differs.
bool collect(nb::handle value, Lists lists, const Structure& expected,
             std::vector<nb::object>& leaves) {
  const Structure::Kind kind = kind_at(value, lists, &expected);
  if (kind != expected.kind()) return false;
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
  if (kind == Structure::Kind::kNamedTuple && !has_fields(value, expected)) return false;
  if (nb::len(value) != forms.size()) return false;
  for (std::size_t i = 0; i < forms.size(); ++i)
    if (!collect(value[i], lists, forms[i], leaves)) return false;
  return true;
}

void collect_by_arity(nb::handle value, const Structure& expected, std::string_view what,
                      std::vector<nb::object>& leaves) {
  if (expected.kind() == Structure::Kind::kLeaf) {
    leaves.push_back(nb::borrow(value));
    return;
  }
  const bool is_map = PyDict_Check(value.ptr());
  const bool is_sequence = PyList_Check(value.ptr()) || PyTuple_Check(value.ptr());
  Content content;
  if (is_map || is_sequence)
    content = content_of(value, is_map ? Structure::Kind::kMap : Structure::Kind::kList);
  const std::vector<nb::object>& items = content.items;
  if (items.size() != expected.children().size()) {
    throw ValueError(std::string(what) + ": must be of the form " + expected.to_string() +
                     ", got " + text(nb::repr(value)));
  }
  for (std::size_t i = 0; i < items.size(); ++i)
    collect_by_arity(items[i], expected.children()[i], what, leaves);
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
  if (kind == Structure::Kind::kMap) {
    nb::object packed = like.attr("copy")();  // keeps the order of insertion and the class
    for (std::size_t i = 0; i < forms.size(); ++i) {
      const nb::object key = decoded(structure.keys()[i]);
      packed[key] = pack_from(like[key], forms[i], next);
    }
    return packed;
  }
  nb::list items;
  for (std::size_t i = 0; i < forms.size(); ++i) items.append(pack_from(like[i], forms[i], next));
  if (kind == Structure::Kind::kNamedTuple) return like.type().attr("_make")(items);
  return kind == Structure::Kind::kTuple ? nb::object(nb::tuple(items)) : items;
}

}  // namespace

Tree to_tree(nb::handle value, Lists lists) {
  std::vector<nb::object> leaves;
  Structure structure = walk(value, lists, nullptr, 0, leaves);
  return Tree(std::move(structure), std::move(leaves));
}

Tree to_tree(nb::handle value, Lists lists, const Structure& expected) {
  std::vector<nb::object> leaves;
  if (collect(value, lists, expected, leaves)) return Tree(expected, std::move(leaves));
  leaves.clear();
  Structure structure = walk(value, lists, &expected, 0, leaves);
  return Tree(std::move(structure), std::move(leaves));
}

std::vector<nb::object> leaves_by_arity(nb::handle value, const Structure& expected,
                                        std::string_view what) {
  std::vector<nb::object> leaves;
  collect_by_arity(value, expected, what, leaves);
  return leaves;
}

nb::object pack(nb::handle like, const Structure& structure, std::span<const nb::object> leaves) {
  return pack_from(like, structure, leaves);
}

bool is_per_replica(nb::handle value) {
  return PyObject_TypeCheck(value.ptr(), reinterpret_cast<PyTypeObject*>(per_replica_type)) != 0;
}

std::vector<nb::object> by_replica(nb::handle value) {
  std::vector<nb::object> trees;
  if (!is_per_replica(value)) {
    trees.push_back(nb::borrow(value));
  } else {
    for (const nb::handle tree : value) trees.push_back(nb::borrow(tree));
  }
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
      "One tree for each replica, in the order of the replicas: what a call for several replicas\n"
      "takes and gives.";
  members["__module__"] = "embertable";
  members["__slots__"] = nb::tuple();
  const nb::object type = nb::borrow(reinterpret_cast<PyObject*>(&PyType_Type));
  nb::object made =
      type("PerReplica", nb::make_tuple(nb::borrow(reinterpret_cast<PyObject*>(&PyTuple_Type))),
           members);
  module.attr("PerReplica") = made;
  per_replica_type = made.release().ptr();
}

}  // namespace embertable::python
