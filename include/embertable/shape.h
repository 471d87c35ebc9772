#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "embertable/version.h"

// The shape of an array, and trees of values, such as the features of a model or their activations.
namespace embertable {

/// Dims of an array, some of them possibly unknown: a small value that allocates nothing. A
/// default-constructed shape has unknown rank; the shape of rank 0 is `Shape::scalar()`.
class EMBERTABLE_API Shape {
 public:
  static constexpr int kMaxRank = 8;            ///< maximum number of dims
  static constexpr std::int64_t kUnknown = -1;  ///< stands for a dim that is not known

  Shape() = default;

  /// Takes dims that are >= 0 or kUnknown. Throws ValueError beyond kMaxRank dims or for another
  /// negative dim.
  Shape(std::initializer_list<std::int64_t> dims);
  explicit Shape(std::span<const std::int64_t> dims);
  static Shape scalar();

  bool has_rank() const noexcept { return rank_ >= 0; }

  /// Number of dims, or -1 if unknown.
  int rank() const noexcept { return rank_; }

  /// Returns one dim. Requires: 0 <= axis < rank.
  std::int64_t operator[](int axis) const noexcept { return dims_[axis]; }

  /// Returns all dims; none if the rank is unknown.
  std::span<const std::int64_t> dims() const noexcept;

  /// True if the rank and every dim are known.
  bool fully_defined() const noexcept;

  /// Returns the product of the dims, 1 for rank 0; the largest int64 where the product is greater.
  /// Requires: the shape is fully defined.
  std::int64_t num_elements() const noexcept;

  /// Returns a copy with another dim on axis 0. Requires: rank >= 1. Throws ValueError for a dim
  /// that the constructor refuses.
  Shape with_leading(std::int64_t dim) const;

  /// Returns a copy without the last axis. Requires: rank >= 1.
  Shape without_last() const;

  /// Returns a copy with one more axis at the end; an unknown rank stays unknown. Throws what the
  /// constructor throws.
  Shape append(std::int64_t dim) const;

  /// Returns a text such as "(2, 4)", "(2, ?)", "(2)", "()" or "(unknown rank)".
  std::string to_string() const;

  /// True for equal ranks and dims; unknown equals unknown.
  friend EMBERTABLE_API bool operator==(const Shape& a, const Shape& b) noexcept;

 private:
  std::array<std::int64_t, kMaxRank> dims_{};
  int rank_ = -1;
};

/// The form of a tree of lists, tuples, named tuples and string-keyed maps, without the contents of
/// its leaves. An immutable value; copies share memory. Leaves are numbered in flatten order:
/// sequence order, field order, and for maps sorted key order. Source: tf.nest.
class EMBERTABLE_API Structure {
 public:
  enum class Kind : std::uint8_t { kLeaf, kList, kTuple, kNamedTuple, kMap };
  using Member = std::pair<std::string, Structure>;

  /// Makes a bare leaf.
  Structure();

  static Structure list(std::vector<Structure> items);
  static Structure tuple(std::vector<Structure> items);

  /// Fields keep their order. Throws ValueError for a repeated field.
  static Structure named_tuple(std::string name, std::vector<Member> fields);

  /// Members are sorted by key. Throws ValueError for a repeated key.
  static Structure map(std::vector<Member> members);

  Kind kind() const noexcept;

  /// Returns the name of a named tuple, else "".
  const std::string& name() const noexcept;

  /// Returns the branches in flatten order; none for a leaf.
  const std::vector<Structure>& children() const noexcept;

  /// Returns the keys of a map or the fields of a named tuple, one for each child; else none.
  const std::vector<std::string>& keys() const noexcept;

  std::int64_t num_leaves() const noexcept;

  /// Returns the path of each leaf: keys and indices from the root joined with '/'; a bare leaf has
  /// the empty path.
  const std::vector<std::string>& paths() const noexcept;

  /// Returns the number of the leaf at a path. Throws KeyError naming the nearest path.
  std::int64_t index_of(std::string_view path) const;

  /// Returns a text such as "(*, {a: *, b: [*]})".
  std::string to_string() const;

  friend EMBERTABLE_API bool operator==(const Structure& a, const Structure& b) noexcept;

 private:
  struct Node;
  explicit Structure(std::shared_ptr<const Node> node) : node_(std::move(node)) {}
  static Structure branch(Kind kind, std::string name, std::vector<std::string> keys,
                          std::vector<Structure> children);
  std::shared_ptr<const Node> node_;
};

/// Compares two structures. Throws ValueError if `got` has another arity, another map's keys, or a
/// leaf where `expected` branches (or the reverse); TypeError if only the kind of a container
/// differs, or the name or fields of a named tuple. `what` names the argument in the message, which
/// also names the path where they differ. Copies of one value compare in constant time. Source:
/// tf.nest.assert_same_structure.
EMBERTABLE_API void assert_same_structure(const Structure& expected, const Structure& got,
                                          std::string_view what);

/// A tree with a T in every leaf: a structure, and the leaves in flatten order.
template <class T>
class Nested {
 public:
  /// Makes a bare leaf.
  Nested(T leaf) { leaves_.push_back(std::move(leaf)); }  // NOLINT: a leaf is a tree

  /// Throws ValueError unless there are as many leaves as the structure has.
  Nested(Structure structure, std::vector<T> leaves)
      : structure_(std::move(structure)), leaves_(std::move(leaves)) {
    check_leaf_count(structure_, static_cast<std::int64_t>(leaves_.size()));
  }

  static Nested list(std::initializer_list<Nested> items) {
    return gather(items, [](std::vector<Structure> s) { return Structure::list(std::move(s)); });
  }
  static Nested tuple(std::initializer_list<Nested> items) {
    return gather(items, [](std::vector<Structure> s) { return Structure::tuple(std::move(s)); });
  }
  /// Sorts the members by key. Throws ValueError for a repeated key.
  static Nested map(std::vector<std::pair<std::string, Nested>> members);

  // A temporary gives its parts away, so that a reference to one of them outlives it.

  const Structure& structure() const& noexcept { return structure_; }
  Structure structure() && noexcept { return std::move(structure_); }

  /// Number of leaves.
  std::int64_t size() const noexcept { return static_cast<std::int64_t>(leaves_.size()); }

  const std::vector<T>& leaves() const& noexcept { return leaves_; }
  std::vector<T> leaves() && noexcept { return std::move(leaves_); }

  /// Return one leaf and its path (see Structure::paths). Require: 0 <= leaf < size(), in flatten
  /// order.
  T& operator[](std::int64_t leaf) & { return leaves_[leaf]; }
  const T& operator[](std::int64_t leaf) const& { return leaves_[leaf]; }
  T operator[](std::int64_t leaf) && { return std::move(leaves_[leaf]); }
  const std::string& path(std::int64_t leaf) const& { return structure_.paths()[leaf]; }
  std::string path(std::int64_t leaf) && { return structure_.paths()[leaf]; }

  /// Return the leaf at a path, such as "user" or "0/item". Throw KeyError naming the nearest path.
  T& at(std::string_view path) & { return leaves_[structure_.index_of(path)]; }
  const T& at(std::string_view path) const& { return leaves_[structure_.index_of(path)]; }
  T at(std::string_view path) && { return std::move(leaves_[structure_.index_of(path)]); }

 private:
  template <class Make>
  static Nested gather(const std::initializer_list<Nested>& items, Make make) {
    std::vector<Structure> forms;
    std::vector<T> leaves;
    for (const Nested& item : items) {
      forms.push_back(item.structure_);
      leaves.insert(leaves.end(), item.leaves_.begin(), item.leaves_.end());
    }
    return Nested(make(std::move(forms)), std::move(leaves));
  }
  static void check_leaf_count(const Structure& structure, std::int64_t leaves);

  Structure structure_;
  std::vector<T> leaves_;
};

/// Throws ValueError unless the structure has `leaves` leaves.
EMBERTABLE_API void assert_leaf_count(const Structure& structure, std::int64_t leaves);

template <class T>
void Nested<T>::check_leaf_count(const Structure& structure, std::int64_t leaves) {
  assert_leaf_count(structure, leaves);
}

template <class T>
Nested<T> Nested<T>::map(std::vector<std::pair<std::string, Nested>> members) {
  std::ranges::sort(members, {}, &std::pair<std::string, Nested>::first);  // like the keys
  std::vector<Structure::Member> forms;
  std::vector<T> leaves;
  for (auto& [key, item] : members) {
    forms.emplace_back(std::move(key), std::move(item.structure_));
    std::ranges::move(item.leaves_, std::back_inserter(leaves));
  }
  return Nested(Structure::map(std::move(forms)), std::move(leaves));
}

}  // namespace embertable
