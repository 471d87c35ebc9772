#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "embertable/errors.h"
#include "embertable/shape.h"
#include "testing/refusal.h"

namespace embertable {
namespace {

using Paths = std::vector<std::string>;

const Structure kLeaf;

Structure list_of(std::size_t n) { return Structure::list(std::vector<Structure>(n)); }
Structure tuple_of(std::size_t n) { return Structure::tuple(std::vector<Structure>(n)); }
Structure point() { return Structure::named_tuple("Point", {{"x", kLeaf}, {"y", kLeaf}}); }

/// {a: *, user: [*, *]}
Structure user_tree() { return Structure::map({{"user", list_of(2)}, {"a", kLeaf}}); }

/// "ValueError: ..." or "TypeError: ..." of comparing; "" if they are the same.
std::string difference(const Structure& expected, const Structure& got) {
  try {
    assert_same_structure(expected, got, "features");
  } catch (const ValueError& error) {
    return std::string("ValueError: ") + error.what();
  } catch (const TypeError& error) {
    return std::string("TypeError: ") + error.what();
  }
  return "";
}

TEST(Structure, N1_MapsFlattenBySortedKeyAndOthersInOrder) {
  const Structure map = Structure::map({{"z", kLeaf}, {"a", kLeaf}, {"k", kLeaf}});
  EXPECT_EQ(map.keys(), (Paths{"a", "k", "z"}));
  EXPECT_EQ(map.paths(), (Paths{"a", "k", "z"}));
  const Structure named = Structure::named_tuple("Pair", {{"z", kLeaf}, {"a", kLeaf}});
  EXPECT_EQ(named.paths(), (Paths{"z", "a"}));
  EXPECT_EQ(named.name(), "Pair");
}

TEST(Structure, N1_ABareLeafIsATree) {
  EXPECT_EQ(kLeaf.kind(), Structure::Kind::kLeaf);
  EXPECT_EQ(kLeaf.num_leaves(), 1);
  EXPECT_TRUE(kLeaf.children().empty());
}

TEST(Structure, N2_PathsAreKeysAndIndicesFromTheRoot) {
  EXPECT_EQ(kLeaf.paths(), Paths{""});
  EXPECT_EQ(list_of(2).paths(), (Paths{"0", "1"}));
  EXPECT_EQ(user_tree().paths(), (Paths{"a", "user/0", "user/1"}));
  EXPECT_EQ(Structure::list({point(), tuple_of(1)}).paths(), (Paths{"0/x", "0/y", "1/0"}));
}

TEST(Structure, LeavesAreFoundByTheirPaths) {
  EXPECT_EQ(kLeaf.index_of(""), 0);
  EXPECT_EQ(user_tree().index_of("user/1"), 2);
  EXPECT_EQ(refusal<KeyError>([] { static_cast<void>(user_tree().index_of("user/7")); }),
            "no leaf is at the path 'user/7'; the nearest is 'user/0'");
  Nested<int> tree = Nested<int>::map({{"a", 1}, {"b", Nested<int>::list({2, 3})}});
  tree.at("b/1") = 4;
  EXPECT_EQ(std::as_const(tree).at("b/1"), 4);
  EXPECT_EQ(std::as_const(tree).at("a"), 1);
}

TEST(Structure, EmptyContainersHaveNoLeaves) {
  for (const Structure& empty : {list_of(0), tuple_of(0), Structure::map({})}) {
    EXPECT_EQ(empty.num_leaves(), 0);
    EXPECT_TRUE(empty.paths().empty());
  }
  EXPECT_EQ(Structure::list({list_of(0), kLeaf}).paths(), Paths{"1"});
}

TEST(Structure, PrintsAsItNests) {
  EXPECT_EQ(kLeaf.to_string(), "*");
  EXPECT_EQ(list_of(0).to_string(), "[]");
  EXPECT_EQ(point().to_string(), "Point(x: *, y: *)");
  EXPECT_EQ(
      Structure::tuple({kLeaf, Structure::map({{"b", list_of(1)}, {"a", kLeaf}})}).to_string(),
      "(*, {a: *, b: [*]})");
}

TEST(Structure, RefusesARepeatedKey) {
  EXPECT_EQ(refusal<ValueError>([] {
              return Structure::map({{"a", kLeaf}, {"b", kLeaf}, {"a", kLeaf}});
            }),
            "map: keys must be distinct, got 'a' twice");
  EXPECT_EQ(refusal<ValueError>([] {
              return Structure::named_tuple("P", {{"x", kLeaf}, {"x", kLeaf}});
            }),
            "named tuple 'P': keys must be distinct, got 'x' twice");
}

TEST(Structure, EqualsByForm) {
  EXPECT_EQ(user_tree(), user_tree());
  EXPECT_NE(list_of(2), tuple_of(2));
  EXPECT_NE(list_of(2), list_of(3));
  EXPECT_NE(kLeaf, list_of(1));
  EXPECT_NE(point(), Structure::named_tuple("Vector", {{"x", kLeaf}, {"y", kLeaf}}));
  EXPECT_NE(Structure::map({{"a", kLeaf}}), Structure::map({{"b", kLeaf}}));
}

TEST(AssertSameStructure, N3_AcceptsEqualForms) {
  EXPECT_EQ(difference(kLeaf, kLeaf), "");
  EXPECT_EQ(difference(user_tree(), user_tree()), "");
  EXPECT_EQ(difference(point(), point()), "");
  EXPECT_EQ(difference(Structure::map({{"a", kLeaf}, {"b", kLeaf}}),
                       Structure::map({{"b", kLeaf}, {"a", kLeaf}})),
            "");
}

TEST(AssertSameStructure, N3_AnotherArityIsAValueError) {
  EXPECT_EQ(difference(list_of(2), list_of(1)),
            "ValueError: features must be a list of 2, got a list of 1");
  EXPECT_EQ(difference(list_of(2), list_of(0)),
            "ValueError: features must be a list of 2, got a list of 0");
  EXPECT_EQ(
      difference(Structure::map({{"a", kLeaf}, {"b", kLeaf}}), Structure::map({{"a", kLeaf}})),
      "ValueError: features must be a map of 2 with keys {'a', 'b'}, got a map of 1 with keys "
      "{'a'}");
}

TEST(AssertSameStructure, N3_OtherKeysOfAMapAreAValueError) {
  EXPECT_EQ(
      difference(Structure::map({{"a", kLeaf}}), Structure::map({{"b", kLeaf}})),
      "ValueError: features must be a map of 1 with keys {'a'}, got a map of 1 with keys {'b'}");
}

TEST(AssertSameStructure, N3_ALeafAgainstABranchIsAValueErrorBothWays) {
  EXPECT_EQ(difference(list_of(1), kLeaf), "ValueError: features must be a list of 1, got a leaf");
  EXPECT_EQ(difference(kLeaf, tuple_of(1)),
            "ValueError: features must be a leaf, got a tuple of 1");
  EXPECT_EQ(difference(kLeaf, list_of(0)), "ValueError: features must be a leaf, got a list of 0");
}

TEST(AssertSameStructure, N3_AnotherKindIsATypeError) {
  EXPECT_EQ(difference(tuple_of(2), list_of(2)),
            "TypeError: features must be a tuple of 2, got a list of 2");
  EXPECT_EQ(difference(list_of(1), Structure::map({{"a", kLeaf}})),
            "TypeError: features must be a list of 1, got a map of 1 with keys {'a'}");
  EXPECT_EQ(difference(tuple_of(2), point()),
            "TypeError: features must be a tuple of 2, got a named tuple 'Point' of 2 with keys "
            "{'x', 'y'}");
}

TEST(AssertSameStructure, N3_NamedTuplesMatchByNameAndFields) {
  const Structure vector = Structure::named_tuple("Vector", {{"x", kLeaf}, {"y", kLeaf}});
  const Structure swapped = Structure::named_tuple("Point", {{"y", kLeaf}, {"x", kLeaf}});
  EXPECT_EQ(difference(point(), vector),
            "TypeError: features must be a named tuple 'Point' of 2 with keys {'x', 'y'}, "
            "got a named tuple 'Vector' of 2 with keys {'x', 'y'}");
  EXPECT_EQ(difference(point(), swapped),
            "TypeError: features must be a named tuple 'Point' of 2 with keys {'x', 'y'}, "
            "got a named tuple 'Point' of 2 with keys {'y', 'x'}");
}

TEST(AssertSameStructure, NamesThePathWhereTheTreesPart) {
  const auto tree = [](Structure inner) {
    return Structure::map({{"a", kLeaf}, {"user", Structure::list({kLeaf, std::move(inner)})}});
  };
  EXPECT_EQ(difference(tree(list_of(2)), tree(kLeaf)),
            "ValueError: features at 'user/1' must be a list of 2, got a leaf");
  EXPECT_EQ(difference(tree(list_of(2)), tree(tuple_of(2))),
            "TypeError: features at 'user/1' must be a list of 2, got a tuple of 2");
}

TEST(AssertLeafCount, SaysHowManyLeavesThereAre) {
  assert_leaf_count(tuple_of(2), 2);
  assert_leaf_count(list_of(0), 0);
  try {
    assert_leaf_count(tuple_of(2), 3);
    FAIL();
  } catch (const ValueError& error) {
    EXPECT_EQ(std::string(error.what()),
              "nested values: one per leaf of (*, *) must be given, 2 in all, got 3");
  }
}

using Numbers = Nested<int>;

TEST(Nested, KeepsLeavesInFlattenOrder) {
  const Numbers tree = Numbers::map({{"z", 1}, {"a", Numbers::list({2, Numbers::tuple({3, 4})})}});
  EXPECT_EQ(tree.leaves(), (std::vector<int>{2, 3, 4, 1}));
  EXPECT_EQ(tree.structure().to_string(), "{a: [*, (*, *)], z: *}");
  EXPECT_EQ(tree.size(), 4);
  EXPECT_EQ(tree.path(2), "a/1/1");
  EXPECT_EQ(tree[3], 1);
}

TEST(Nested, ABareLeafIsATree) {
  Numbers leaf = 7;
  leaf[0] = 8;
  EXPECT_EQ(leaf.leaves(), std::vector<int>{8});
  EXPECT_EQ(leaf.path(0), "");
}

TEST(Nested, N4_IsRepackedInTheSameContainers) {
  const Numbers tree = Numbers::tuple({1, Numbers::list({2})});
  const Nested<std::string> packed(tree.structure(), {"one", "two"});
  EXPECT_EQ(packed.structure(), tree.structure());
  EXPECT_EQ(packed[1], "two");
  EXPECT_THROW(Nested<std::string>(tree.structure(), {"one"}), ValueError);
  EXPECT_THROW(Nested<std::string>(tree.structure(), {"one", "two", "three"}), ValueError);
}

}  // namespace
}  // namespace embertable
