#include "embertable/nested.h"

#include <algorithm>

#include "embertable/errors.h"

namespace embertable {

struct Structure::Node {
  Kind kind = Kind::kLeaf;
  std::string name;
  std::vector<Structure> children;
  std::vector<std::string> keys;
  std::vector<std::string> paths;
};

namespace {

using Kind = Structure::Kind;

std::string_view kind_name(Kind kind) {
  switch (kind) {
    case Kind::kLeaf: return "leaf";
    case Kind::kList: return "list";
    case Kind::kTuple: return "tuple";
    case Kind::kNamedTuple: return "named tuple";
    case Kind::kMap: return "map";
  }
  return "";
}

std::string joined(const std::string& path, const std::string& key) { return path.empty() ? key : path + "/" + key; }

std::string key_of(const Structure& structure, std::size_t child) {
  return structure.keys().empty() ? std::to_string(child) : structure.keys()[child];
}

std::vector<std::string> paths_of(const std::vector<Structure>& children, const std::vector<std::string>& keys) {
  std::vector<std::string> paths;
  for (std::size_t i = 0; i < children.size(); ++i) {
    const std::string key = keys.empty() ? std::to_string(i) : keys[i];
    for (const std::string& path : children[i].paths()) paths.push_back(path.empty() ? key : joined(key, path));
  }
  return paths;
}

std::string at(const std::string& path) { return path.empty() ? "" : " at '" + path + "'"; }

std::string key_list(const std::vector<std::string>& keys) {
  std::string text = "{";
  for (const std::string& key : keys) text += (text.size() > 1 ? ", " : "") + key;
  return text + "}";
}

void compare(const Structure& expected, const Structure& got, std::string_view what, const std::string& path) {
  const auto fail = [&](const std::string& rule) { return std::string(what) + at(path) + ": " + rule; };
  const bool leaf = expected.kind() == Kind::kLeaf, got_leaf = got.kind() == Kind::kLeaf;
  if (leaf != got_leaf) {
    throw ValueError(fail("expected a " + std::string(kind_name(expected.kind())) + ", got a " +
                          std::string(kind_name(got.kind()))));
  }
  if (leaf) return;
  if (expected.children().size() != got.children().size()) {
    throw ValueError(fail("expected " + std::to_string(expected.children().size()) + " members, got " +
                          std::to_string(got.children().size())));
  }
  if (expected.kind() != got.kind()) {
    throw TypeError(fail("expected a " + std::string(kind_name(expected.kind())) + ", got a " +
                         std::string(kind_name(got.kind()))));
  }
  if (expected.kind() == Kind::kMap && expected.keys() != got.keys()) {
    throw ValueError(fail("expected the keys " + key_list(expected.keys()) + ", got " + key_list(got.keys())));
  }
  if (expected.kind() == Kind::kNamedTuple && (expected.name() != got.name() || expected.keys() != got.keys())) {
    throw TypeError(fail("expected the named tuple " + expected.name() + key_list(expected.keys()) + ", got " +
                         got.name() + key_list(got.keys())));
  }
  for (std::size_t i = 0; i < expected.children().size(); ++i)
    compare(expected.children()[i], got.children()[i], what, joined(path, key_of(expected, i)));
}

}  // namespace

Structure::Structure() {
  static const auto leaf = [] {
    auto node = std::make_shared<Node>();
    node->paths.emplace_back();
    return std::shared_ptr<const Node>(std::move(node));
  }();
  node_ = leaf;
}

Structure Structure::list(std::vector<Structure> items) {
  auto node = std::make_shared<Node>();
  node->kind = Kind::kList;
  node->paths = paths_of(items, {});
  node->children = std::move(items);
  return Structure(std::move(node));
}

Structure Structure::tuple(std::vector<Structure> items) {
  auto node = std::make_shared<Node>();
  node->kind = Kind::kTuple;
  node->paths = paths_of(items, {});
  node->children = std::move(items);
  return Structure(std::move(node));
}

Structure Structure::named_tuple(std::string name, std::vector<Member> fields) {
  auto node = std::make_shared<Node>();
  node->kind = Kind::kNamedTuple;
  node->name = std::move(name);
  for (Member& field : fields) {
    node->keys.push_back(std::move(field.first));
    node->children.push_back(std::move(field.second));
  }
  node->paths = paths_of(node->children, node->keys);
  return Structure(std::move(node));
}

Structure Structure::map(std::vector<Member> members) {
  std::sort(members.begin(), members.end(), [](const Member& a, const Member& b) { return a.first < b.first; });
  auto node = std::make_shared<Node>();
  node->kind = Kind::kMap;
  for (Member& member : members) {
    if (!node->keys.empty() && node->keys.back() == member.first) {
      throw ValueError("map: keys must differ, got '" + member.first + "' twice");
    }
    node->keys.push_back(std::move(member.first));
    node->children.push_back(std::move(member.second));
  }
  node->paths = paths_of(node->children, node->keys);
  return Structure(std::move(node));
}

Structure::Kind Structure::kind() const noexcept { return node_->kind; }
const std::string& Structure::name() const noexcept { return node_->name; }
const std::vector<Structure>& Structure::children() const noexcept { return node_->children; }
const std::vector<std::string>& Structure::keys() const noexcept { return node_->keys; }
std::int64_t Structure::num_leaves() const noexcept { return static_cast<std::int64_t>(node_->paths.size()); }
const std::vector<std::string>& Structure::paths() const noexcept { return node_->paths; }

std::string Structure::to_string() const {
  if (kind() == Kind::kLeaf) return "*";
  std::string members;
  for (std::size_t i = 0; i < children().size(); ++i) {
    if (!members.empty()) members += ", ";
    if (!keys().empty()) members += keys()[i] + ": ";
    members += children()[i].to_string();
  }
  if (kind() == Kind::kList) return "[" + members + "]";
  if (kind() == Kind::kMap) return "{" + members + "}";
  return name() + "(" + members + ")";
}

bool operator==(const Structure& a, const Structure& b) noexcept {
  return a.node_ == b.node_ || (a.kind() == b.kind() && a.name() == b.name() && a.keys() == b.keys() &&
                                a.children() == b.children());
}

void assert_same_structure(const Structure& expected, const Structure& got, std::string_view what) {
  if (expected.node_ != got.node_) compare(expected, got, what, "");
}

void assert_leaf_count(const Structure& structure, std::int64_t leaves) {
  if (structure.num_leaves() != leaves) {
    throw ValueError("tree: the structure " + structure.to_string() + " has " + std::to_string(structure.num_leaves()) +
                     " leaves, got " + std::to_string(leaves));
  }
}

}  // namespace embertable
