#include "testing/memory_files.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <utility>

#include "embertable/errors.h"

namespace embertable::checkpoint {

namespace fs = std::filesystem;

struct MemoryFiles::Node {
  bool directory = false;
  std::string now, synced;  // contents of a file
  Names names, synced_names;
};

namespace {

[[noreturn]] void fail(const char* operation, const fs::path& path, const char* cause) {
  throw IoError(path.string() + ": cannot " + operation + ": " + cause);
}

}  // namespace

std::vector<std::string> MemoryFiles::names_of(const Node& directory) {
  std::vector<std::string> names;
  for (const auto& [name, node] : directory.names) names.push_back(name);
  return names;
}

void MemoryFiles::remove_from(Node& directory, const fs::path& path) {
  const auto found = directory.names.find(path.filename().string());
  if (found == directory.names.end()) fail("remove", path, "there is no such path");
  if (!found->second->names.empty()) fail("remove", path, "it is not empty");
  directory.names.erase(found);
}

/// What the file holds, as it changes behind everyone's back.
class MemoryFiles::Map final : public FileMap {
 public:
  explicit Map(NodePtr node) : node_(std::move(node)) { bytes_ = bytes_of(node_->now); }

 private:
  NodePtr node_;
};

class MemoryFiles::OpenFile final : public File {
 public:
  OpenFile(MemoryFiles& files, fs::path path, NodePtr node)
      : files_(files), path_(std::move(path)), node_(std::move(node)) {}

  void write(std::span<const std::byte> bytes) override {
    const std::lock_guard lock(files_.mutex_);
    const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    try {
      files_.count("write", path_);
    } catch (const IoError&) {
      node_->now += text.substr(0, text.size() / 2);
      throw;
    }
    node_->now += text;
  }

  std::size_t read(std::int64_t offset, std::span<std::byte> out) const override {
    const std::lock_guard lock(files_.mutex_);
    files_.count("read", path_);
    const auto begin = std::min(static_cast<std::size_t>(offset), node_->now.size());
    const std::size_t size = std::min(out.size(), node_->now.size() - begin);
    if (size > 0) std::memcpy(out.data(), node_->now.data() + begin, size);
    files_.bytes_read_ += static_cast<std::int64_t>(size);
    return size;
  }

  std::int64_t size() const override {
    const std::lock_guard lock(files_.mutex_);
    files_.count("stat", path_);
    return static_cast<std::int64_t>(node_->now.size());
  }

  std::unique_ptr<FileMap> map() const override {
    const std::lock_guard lock(files_.mutex_);
    files_.count("map", path_);
    return std::make_unique<Map>(node_);
  }

  void sync() override {
    const std::lock_guard lock(files_.mutex_);
    files_.count("sync", path_);
    node_->synced = node_->now;
  }

 private:
  MemoryFiles& files_;
  fs::path path_;
  NodePtr node_;
};

class MemoryFiles::OpenDirectory final : public Directory {
 public:
  OpenDirectory(MemoryFiles& files, fs::path path, NodePtr node)
      : files_(files), path_(std::move(path)), node_(std::move(node)) {}

  std::vector<std::string> list() override {
    const std::lock_guard lock(files_.mutex_);
    files_.count("list", path_);
    return names_of(*node_);
  }

  std::unique_ptr<Directory> open(const std::string& name) override {
    const std::lock_guard lock(files_.mutex_);
    files_.count("open directory", path_ / name);
    const auto found = node_->names.find(name);
    if (found == node_->names.end() || !found->second->directory) return nullptr;
    return std::make_unique<OpenDirectory>(files_, path_ / name, found->second);
  }

  void remove(const std::string& name) override {
    const std::lock_guard lock(files_.mutex_);
    files_.count("remove", path_ / name);
    remove_from(*node_, path_ / name);
  }

 private:
  MemoryFiles& files_;
  fs::path path_;
  NodePtr node_;
};

class MemoryFiles::Lock final : public FileLock {
 public:
  Lock(MemoryFiles& files, fs::path path) : files_(files), path_(std::move(path)) {}
  ~Lock() override {
    const std::lock_guard lock(files_.mutex_);
    files_.locked_.erase(path_);
  }

 private:
  MemoryFiles& files_;
  fs::path path_;
};

MemoryFiles::MemoryFiles() : root_(std::make_shared<Node>(Node{.directory = true})) {}

void MemoryFiles::fail_at(std::int64_t number, Fault fault) {
  operations_ = 0;
  fail_at_ = number;
  fault_ = fault;
}

std::int64_t MemoryFiles::bytes_read() const {
  const std::lock_guard lock(mutex_);
  return bytes_read_;
}

std::int64_t MemoryFiles::operations() const { return operations_; }

void MemoryFiles::heal() { fail_at(-1, Fault::kError); }

void MemoryFiles::count(const char* operation, const fs::path& path) {
  const std::int64_t number = operations_++;
  if (fail_at_ < 0 || number < fail_at_) return;
  if (number == fail_at_ || fault_ == Fault::kKill) fail(operation, path, "made to fail");
}

void MemoryFiles::lose_power(Loss loss) {
  heal();
  const std::function<void(Node&)> lose = [&](Node& node) {
    node.now = node.synced;
    const bool upper = std::any_of(node.names.begin(), node.names.end(),
                                   [](const auto& entry) { return entry.second->directory; });
    if (loss == Loss::kUnsynced || (loss == Loss::kUpperNames && upper))
      node.names = node.synced_names;
    node.synced_names = node.names;
    for (const auto& [name, child] : node.names) lose(*child);
  };
  lose(*root_);
}

std::unique_ptr<MemoryFiles> MemoryFiles::copy() const {
  std::map<const Node*, NodePtr> copies;
  const std::function<NodePtr(const NodePtr&)> clone = [&](const NodePtr& node) {
    auto& copied = copies[node.get()];
    if (copied) return copied;
    const auto made = copied = std::make_shared<Node>(*node);
    for (Names* names : {&made->names, &made->synced_names})
      for (auto& [name, child] : *names) child = clone(child);
    return made;
  };
  auto files = std::make_unique<MemoryFiles>();
  files->root_ = clone(root_);
  return files;
}

std::map<std::string, std::string*> MemoryFiles::contents() {
  std::map<std::string, std::string*> found;
  const std::function<void(Node&, const std::string&)> walk = [&](Node& node,
                                                                  const std::string& path) {
    if (!node.directory) found[path] = &node.now;
    for (const auto& [name, child] : node.names) walk(*child, path + "/" + name);
  };
  walk(*root_, "");
  return found;
}

MemoryFiles::NodePtr MemoryFiles::find(const fs::path& path) const {
  NodePtr node = root_;
  for (const fs::path& part : path.relative_path()) {
    if (part.empty()) continue;
    const auto found = node->names.find(part.string());
    if (found == node->names.end()) return nullptr;
    node = found->second;
  }
  return node;
}

MemoryFiles::Node& MemoryFiles::existing(const char* operation, const fs::path& path) const {
  const NodePtr node = find(path);
  if (!node) fail(operation, path, "there is no such path");
  return *node;  // held by its directory
}

MemoryFiles::Node& MemoryFiles::parent(const char* operation, const fs::path& path) const {
  return existing(operation, path.parent_path());
}

std::unique_ptr<File> MemoryFiles::create(const fs::path& path) {
  const std::lock_guard lock(mutex_);
  count("create", path);
  const auto node = std::make_shared<Node>();
  if (!parent("create", path).names.emplace(path.filename().string(), node).second)
    fail("create", path, "it exists");
  return std::make_unique<OpenFile>(*this, path, node);
}

std::unique_ptr<File> MemoryFiles::open(const fs::path& path) {
  const std::lock_guard lock(mutex_);
  count("open", path);
  existing("open", path);
  return std::make_unique<OpenFile>(*this, path, find(path));
}

std::unique_ptr<Directory> MemoryFiles::open_directory(const fs::path& path) {
  const std::lock_guard lock(mutex_);
  count("open directory", path);
  if (!existing("open directory", path).directory)
    fail("open directory", path, "it is no directory");
  return std::make_unique<OpenDirectory>(*this, path, find(path));
}

std::optional<FileSystem::Entry> MemoryFiles::stat(const fs::path& path) {
  const std::lock_guard lock(mutex_);
  count("stat", path);
  const NodePtr node = find(path);
  if (!node) return std::nullopt;
  return Entry{node->directory, static_cast<std::int64_t>(node->now.size())};
}

std::vector<std::string> MemoryFiles::list(const fs::path& directory) {
  const std::lock_guard lock(mutex_);
  count("list", directory);
  return names_of(existing("list", directory));
}

void MemoryFiles::make_directory(const fs::path& path) {
  const std::lock_guard lock(mutex_);
  count("make directory", path);
  const auto node = std::make_shared<Node>(Node{.directory = true});
  if (!parent("make directory", path).names.emplace(path.filename().string(), node).second)
    fail("make directory", path, "it exists");
}

void MemoryFiles::rename(const fs::path& from, const fs::path& to) {
  const std::lock_guard lock(mutex_);
  count("rename", from);
  const bool directory = existing("rename", from).directory;
  const NodePtr replaced = find(to);
  if (replaced && (directory || replaced->directory)) fail("rename", from, "the new name is taken");
  parent("rename", to).names[to.filename().string()] = find(from);
  parent("rename", from).names.erase(from.filename().string());
}

void MemoryFiles::exchange(const fs::path& a, const fs::path& b) {
  const std::lock_guard lock(mutex_);
  count("exchange", a);
  existing("exchange", a);
  existing("exchange", b);
  std::swap(parent("exchange", a).names[a.filename().string()],
            parent("exchange", b).names[b.filename().string()]);
}

void MemoryFiles::remove(const fs::path& path) {
  const std::lock_guard lock(mutex_);
  count("remove", path);
  remove_from(parent("remove", path), path);
}

void MemoryFiles::sync_directory(const fs::path& directory) {
  const std::lock_guard lock(mutex_);
  count("sync", directory);
  Node& node = existing("sync", directory);
  node.synced_names = node.names;
}

std::unique_ptr<FileLock> MemoryFiles::lock(const fs::path& path) {
  const std::lock_guard lock(mutex_);
  count("lock", path);
  NodePtr& node = parent("lock", path).names[path.filename().string()];
  if (!node) node = std::make_shared<Node>();
  if (!locked_.insert(path).second) throw_held(path, node->now);
  node->now = std::to_string(::getpid()) + "\n";
  return std::make_unique<Lock>(*this, path);
}

}  // namespace embertable::checkpoint
