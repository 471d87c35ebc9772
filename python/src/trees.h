#pragma once

#include <nanobind/nanobind.h>

#include <span>
#include <string_view>
#include <vector>

#include "embertable/shape.h"

namespace embertable::python {

namespace nb = nanobind;

// Trees are Python's own: list, tuple, named tuple, dict and other mappings, whose keys have an
// order, and classes of the package attrs. Mappings are flattened in sorted key order. Anything
// else is a leaf.

/// Whether lists and tuples of numbers are leaves.
enum class Lists : std::uint8_t { kBranches, kOfNumbersAreLeaves };

using Tree = Nested<nb::object>;

/// Throws TypeError for keys without an order and for a PerReplica inside a tree, ValueError for a
/// container that contains itself, or too many others within each other.
Tree to_tree(nb::handle value, Lists lists);

/// Does the same, except that a list of numbers is a leaf only if a leaf is expected there. If the
/// value has the expected form, its structure is a copy of that.
Tree to_tree(nb::handle value, Lists lists, const Structure& expected);

/// True for what is no container.
bool is_leaf(nb::handle value);

/// Returns what is in the places of the leaves of `expected`. A list or tuple may stand for any
/// container, whose order it has; the names of others must be those that are expected. Throws
/// ValueError naming `what` for other names and for another number of items.
std::vector<nb::object> leaves_in_places_of(nb::handle value, const Structure& expected,
                                            std::string_view what);

/// Returns a tree with the containers of `like`, whose structure is given, and these leaves, in
/// flatten order.
nb::object pack(nb::handle like, const Structure& structure, std::span<const nb::object> leaves);

/// Returns the trees of a PerReplica, one for each replica of a tree that has a PerReplica inside
/// of lists, tuples or dicts, or the one tree that the value is. TensorFlow's PerReplica counts
/// too. Throws ValueError for different numbers of parts.
std::vector<nb::object> by_replica(nb::handle value);
bool is_per_replica(nb::handle value);

/// Returns the tree itself if there is one, else a PerReplica.
nb::object per_replica(const std::vector<nb::object>& trees);

}  // namespace embertable::python
