#include <algorithm>

#include "base/did_you_mean.h"
#include "embertable/errors.h"
#include "embertable/shape.h"

namespace embertable {

struct Structure::Node {
  Kind kind = Kind::kLeaf;
  std::string name;
  std::vector<std::string> keys;
  std::vector<Structure> children;
  std::vector<std::string> paths;
};

namespace {

using Kind = Structure::Kind;

/// Returns the step of a path that leads to a child.
std::string key_of(const std::vector<std::string>& keys, std::size_t child) {
  return keys.empty() ? std::to_string(child) : keys[child];
}

std::string joined(const std::string& path, const std::string& key) {
  return path.empty() ? key : path + "/" + key;
}

void check_distinct(std::vector<std::string> keys, const std::string& owner) {
  std::ranges::sort(keys);
  const auto twin = std::ranges::adjacent_find(keys);
  if (twin == keys.end()) return;
  throw ValueError(owner + ": keys must be distinct, got '" + *twin + "' twice");
}

std::string listed(const std::vector<std::string>& keys) {
  std::string text;
  for (const std::string& key : keys) text += (text.empty() ? "'" : ", '") + key + "'";
  return "{" + text + "}";
}

const char* kind_text(Kind kind) {
  switch (kind) {
    case Kind::kLeaf:
      return "a leaf";
    case Kind::kList:
      return "a list";
    case Kind::kTuple:
      return "a tuple";
    case Kind::kNamedTuple:
      return "a named tuple";
    case Kind::kMap:
      return "a map";
  }
  return "";
}

/// Returns "a leaf", "a list of 2", or "a named tuple 'Point' of 2 with keys {'x', 'y'}".
std::string described(const Structure& structure) {
  std::string text = kind_text(structure.kind());
  if (structure.kind() == Kind::kLeaf) return text;
  if (structure.kind() == Kind::kNamedTuple) text += " '" + structure.name() + "'";
  text += " of " + std::to_string(structure.children().size());
  return structure.keys().empty() ? text : text + " with keys " + listed(structure.keys());
}

/// Returns "features at 'user/1' must be a list of 2, got a leaf".
std::string difference(const Structure& expected, const Structure& got, std::string_view what,
                       const std::string& path) {
  const std::string where = path.empty() ? "" : " at '" + path + "'";
  return std::string(what) + where + " must be " + described(expected) + ", got " + described(got);
}

/// Throws if the topmost containers differ.
void refuse_top(const Structure& expected, const Structure& got, std::string_view what,
                const std::string& path) {
  const bool leaf_and_branch = (expected.kind() == Kind::kLeaf) != (got.kind() == Kind::kLeaf);
  if (leaf_and_branch || expected.children().size() != got.children().size()) {
    throw ValueError(difference(expected, got, what, path));
  }
  const bool other_keys = expected.keys() != got.keys();
  if (expected.kind() != got.kind() || expected.name() != got.name() ||
      (other_keys && expected.kind() == Kind::kNamedTuple)) {
    throw TypeError(difference(expected, got, what, path));
  }
  if (other_keys) throw ValueError(difference(expected, got, what, path));
}

/// Throws for the first containers that differ, in the order of a walk from the top.
void refuse(const Structure& expected, const Structure& got, std::string_view what,
            const std::string& path) {
  refuse_top(expected, got, what, path);
  for (std::size_t i = 0; i < expected.children().size(); ++i) {
    refuse(expected.children()[i], got.children()[i], what,
           joined(path, key_of(expected.keys(), i)));
  }
}

}  // namespace

Structure::Structure() {
  static const auto leaf = std::make_shared<const Node>(Node{.paths = {""}});
  node_ = leaf;
}

Structure Structure::branch(Kind kind, std::string name, std::vector<std::string> keys,
                            std::vector<Structure> children) {
  auto node = std::make_shared<Node>();
  for (std::size_t i = 0; i < children.size(); ++i) {
    const bool leaf = children[i].kind() == Kind::kLeaf;
    for (const std::string& path : children[i].paths()) {
      node->paths.push_back(leaf ? key_of(keys, i) : joined(key_of(keys, i), path));
    }
  }
  node->kind = kind;
  node->name = std::move(name);
  node->keys = std::move(keys);
  node->children = std::move(children);
  return Structure(std::move(node));
}

Structure Structure::list(std::vector<Structure> items) {
  return branch(Kind::kList, "", {}, std::move(items));
}

Structure Structure::tuple(std::vector<Structure> items) {
  return branch(Kind::kTuple, "", {}, std::move(items));
}

Structure Structure::named_tuple(std::string name, std::vector<Member> fields) {
  std::vector<std::string> keys;
  std::vector<Structure> children;
  for (Member& member : fields) {
    keys.push_back(std::move(member.first));
    children.push_back(std::move(member.second));
  }
  check_distinct(keys, "named tuple '" + name + "'");
  return branch(Kind::kNamedTuple, std::move(name), std::move(keys), std::move(children));
}

Structure Structure::map(std::vector<Member> members) {
  std::ranges::stable_sort(members, {}, &Member::first);
  std::vector<std::string> keys;
  std::vector<Structure> children;
  for (Member& member : members) {
    keys.push_back(std::move(member.first));
    children.push_back(std::move(member.second));
  }
  check_distinct(keys, "map");
  return branch(Kind::kMap, "", std::move(keys), std::move(children));
}

Structure::Kind Structure::kind() const noexcept { return node_->kind; }
const std::string& Structure::name() const noexcept { return node_->name; }
const std::vector<Structure>& Structure::children() const noexcept { return node_->children; }
const std::vector<std::string>& Structure::keys() const noexcept { return node_->keys; }
const std::vector<std::string>& Structure::paths() const noexcept { return node_->paths; }
std::int64_t Structure::index_of(std::string_view path) const {
  const auto found = std::ranges::find(paths(), path);
  if (found == paths().end()) {
    throw KeyError("no leaf is at the path '" + std::string(path) + "'" +
                   name_hint(path, std::vector<std::string_view>(paths().begin(), paths().end())));
  }
  return found - paths().begin();
}

std::int64_t Structure::num_leaves() const noexcept {
  return static_cast<std::int64_t>(node_->paths.size());
}

std::string Structure::to_string() const {
  if (kind() == Kind::kLeaf) return "*";
  std::string text;
  for (std::size_t i = 0; i < children().size(); ++i) {
    if (i > 0) text += ", ";
    if (!keys().empty()) text += keys()[i] + ": ";
    text += children()[i].to_string();
  }
  if (kind() == Kind::kList) return "[" + text + "]";
  if (kind() == Kind::kMap) return "{" + text + "}";
  return name() + "(" + text + ")";
}

bool operator==(const Structure& a, const Structure& b) noexcept {
  const Structure::Node &x = *a.node_, &y = *b.node_;
  return &x == &y ||
         (x.kind == y.kind && x.name == y.name && x.keys == y.keys && x.children == y.children);
}

void assert_same_structure(const Structure& expected, const Structure& got, std::string_view what) {
  if (!(expected == got)) refuse(expected, got, what, "");
}

void assert_leaf_count(const Structure& structure, std::int64_t leaves) {
  if (leaves == structure.num_leaves()) return;
  throw ValueError("nested values: one per leaf of " + structure.to_string() + " must be given, " +
                   std::to_string(structure.num_leaves()) + " in all, got " +
                   std::to_string(leaves));
}

}  // namespace embertable
