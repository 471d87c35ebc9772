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
  fs::path target = {};     // where a link leads
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

void MemoryFiles::make_in(Node& directory, const char* operation, const fs::path& path,
                          NodePtr node) {
  if (!directory.names.emplace(path.filename().string(), std::move(node)).second)
    fail(operation, path, "it exists");
}

void MemoryFiles::rename_in(Node& from_directory, const fs::path& from, Node& to_directory,
                            const fs::path& to) {
  const auto found = from_directory.names.find(from.filename().string());
  if (found == from_directory.names.end()) fail("rename", from, "there is no such path");
  const NodePtr moved = found->second;
  const auto replaced = to_directory.names.find(to.filename().string());
  if (replaced != to_directory.names.end() && (moved->directory || replaced->second->directory))
    fail("replace", to, replaced->second->directory ? "it is a directory" : "it is a file");
  from_directory.names.erase(found);
  to_directory.names[to.filename().string()] = moved;
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

class MemoryFiles::Lock final : public FileLock {
 public:
  Lock(MemoryFiles& files, NodePtr directory, std::string name)
      : files_(files), directory_(std::move(directory)), name_(std::move(name)) {}
  ~Lock() override {
    const std::lock_guard lock(files_.mutex_);
    files_.locked_.erase({directory_.get(), name_});
  }

 private:
  MemoryFiles& files_;
  NodePtr directory_;
  std::string name_;
};

class MemoryFiles::OpenDirectory final : public Directory {
 public:
  OpenDirectory(MemoryFiles& files, fs::path path, NodePtr node)
      : files_(files), path_(std::move(path)), node_(std::move(node)) {}

  std::vector<std::string> list() override {
    const auto lock = files_.begin("list", path_);
    return names_of(*node_);
  }

  std::unique_ptr<Directory> open(const std::string& name) override {
    const auto lock = files_.begin("open directory", path_ / name);
    return opened(name, find(name));
  }

  std::unique_ptr<Directory> enter(const std::string& name) override {
    const auto lock = files_.begin("open directory", path_ / name);
    return opened(name, files_.followed(find(name)));
  }

  std::unique_ptr<File> open_file(const std::string& name) override {
    const auto lock = files_.begin("open", path_ / name);
    const NodePtr node = files_.followed(find(name));
    if (!node || node->directory) return nullptr;
    return std::make_unique<OpenFile>(files_, path_ / name, node);
  }

  std::unique_ptr<File> create(const std::string& name) override {
    const auto lock = files_.begin("create", path_ / name);
    const auto node = std::make_shared<Node>();
    make_in(*node_, "create", path_ / name, node);
    return std::make_unique<OpenFile>(files_, path_ / name, node);
  }

  void make_directory(const std::string& name) override {
    const auto lock = files_.begin("make directory", path_ / name);
    make_in(*node_, "make directory", path_ / name,
            std::make_shared<Node>(Node{.directory = true}));
  }

  void rename(const std::string& from, const std::string& to) override {
    const auto lock = files_.begin("rename", path_ / from);
    rename_in(*node_, path_ / from, *node_, path_ / to);
  }

  void remove(const std::string& name) override {
    const auto lock = files_.begin("remove", path_ / name);
    remove_from(*node_, path_ / name);
  }

  void sync() override {
    const auto lock = files_.begin("sync", path_);
    node_->synced_names = node_->names;
  }

  std::unique_ptr<FileLock> lock(const std::string& name) override {
    const auto lock = files_.begin("lock", path_ / name);
    NodePtr& node = node_->names[name];
    if (!node) node = std::make_shared<Node>();
    if (!node->target.empty()) fail("lock", path_ / name, "it is a link");
    if (!files_.locked_.emplace(node_.get(), name).second) throw_held(path_ / name, node->now);
    node->now = std::to_string(::getpid()) + "\n";
    return std::make_unique<Lock>(files_, node_, name);
  }

  /// Does not wait: memory has one user at a time.
  std::unique_ptr<FileLock> wait_for_lock(const std::string& name) override {
    const auto lock = files_.begin("lock", path_ / name);
    if (!files_.locked_.emplace(node_.get(), name).second) throw_held(path_ / name, "");
    return std::make_unique<Lock>(files_, node_, name);
  }

 private:
  NodePtr find(const std::string& name) const {
    const auto found = node_->names.find(name);
    return found == node_->names.end() ? nullptr : found->second;
  }

  std::unique_ptr<Directory> opened(const std::string& name, const NodePtr& node) const {
    if (!node || !node->directory) return nullptr;
    return std::make_unique<OpenDirectory>(files_, path_ / name, node);
  }

  MemoryFiles& files_;
  fs::path path_;
  NodePtr node_;
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

std::unique_lock<std::mutex> MemoryFiles::begin(const char* operation, const fs::path& path) {
  if (meanwhile && !is_interrupted_.exchange(true)) {
    meanwhile(operation, path);
    is_interrupted_ = false;
  }
  std::unique_lock lock(mutex_);
  count(operation, path);
  return lock;
}

void MemoryFiles::make_link(const fs::path& path, const fs::path& target) {
  const std::lock_guard lock(mutex_);
  const auto node = std::make_shared<Node>();
  node->target = target;
  make_in(parent("make link", path), "make link", path, node);
}

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
    if (!node.directory && node.target.empty()) found[path] = &node.now;
    for (const auto& [name, child] : node.names) walk(*child, path + "/" + name);
  };
  walk(*root_, "");
  return found;
}

/// Follows links, the last part of the path too. Null if nothing is there.
MemoryFiles::NodePtr MemoryFiles::find(const fs::path& path) const {
  NodePtr node = root_;
  for (const fs::path& part : path.relative_path()) {
    if (part.empty()) continue;
    const auto found = node->names.find(part.string());
    if (found == node->names.end()) return nullptr;
    node = followed(found->second);
    if (!node) return nullptr;
  }
  return node;
}

/// Returns what a link leads to, or null, and anything else as it is.
MemoryFiles::NodePtr MemoryFiles::followed(NodePtr node) const {
  if (!node || node->target.empty()) return node;
  return find(node->target);
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
  const auto lock = begin("create", path);
  const auto node = std::make_shared<Node>();
  make_in(parent("create", path), "create", path, node);
  return std::make_unique<OpenFile>(*this, path, node);
}

std::unique_ptr<File> MemoryFiles::open(const fs::path& path) {
  const auto lock = begin("open", path);
  existing("open", path);
  return std::make_unique<OpenFile>(*this, path, find(path));
}

std::unique_ptr<Directory> MemoryFiles::open_directory(const fs::path& path) {
  const auto lock = begin("open directory", path);
  if (!existing("open directory", path).directory)
    fail("open directory", path, "it is no directory");
  return std::make_unique<OpenDirectory>(*this, path, find(path));
}

std::optional<FileSystem::Entry> MemoryFiles::stat(const fs::path& path) {
  const auto lock = begin("stat", path);
  const NodePtr node = find(path);
  if (!node) return std::nullopt;
  return Entry{node->directory, static_cast<std::int64_t>(node->now.size())};
}

std::vector<std::string> MemoryFiles::list(const fs::path& directory) {
  const auto lock = begin("list", directory);
  return names_of(existing("list", directory));
}

void MemoryFiles::make_directory(const fs::path& path) {
  const auto lock = begin("make directory", path);
  make_in(parent("make directory", path), "make directory", path,
          std::make_shared<Node>(Node{.directory = true}));
}

void MemoryFiles::rename(const fs::path& from, const fs::path& to) {
  const auto lock = begin("rename", from);
  rename_in(parent("rename", from), from, parent("rename", to), to);
}

void MemoryFiles::remove(const fs::path& path) {
  const auto lock = begin("remove", path);
  remove_from(parent("remove", path), path);
}

void MemoryFiles::sync_directory(const fs::path& directory) {
  const auto lock = begin("sync", directory);
  Node& node = existing("sync", directory);
  node.synced_names = node.names;
}

}  // namespace embertable::checkpoint
