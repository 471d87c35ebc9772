#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "checkpoint/file.h"

namespace embertable::checkpoint {

/// For tests: files in memory that tell what is flushed from what is not, and fail on request.
/// Paths are taken apart at their slashes; the root directory is there from the start.
class MemoryFiles final : public FileSystem {
 public:
  enum class Fault : std::uint8_t {
    kError,  ///< one operation throws IoError; a failing write leaves the first half of its bytes
    kKill,   ///< so do all that come after it
  };
  enum class Loss : std::uint8_t {
    kUnsynced,    ///< only what was synced is left
    kContents,    ///< names survive unsynced, contents do not: the worst order of writing back
    kUpperNames,  ///< like kUnsynced, but changed names in directories of mere files survive
  };

  MemoryFiles();

  /// Lets operation `number` fail, counted from 0 from now on.
  void fail_at(std::int64_t number, Fault fault);

  /// Bytes that reads have given so far.
  std::int64_t bytes_read() const;

  /// Operations since the last `fail_at` or `heal`.
  std::int64_t operations() const;

  /// No operation fails any more.
  void heal();

  /// Loses power: goes on with what is left then.
  void lose_power(Loss loss);

  /// All names, contents and sync states.
  std::unique_ptr<MemoryFiles> copy() const;

  /// Every file with its path, and its contents to be changed behind everyone's back.
  std::map<std::string, std::string*> contents();

  /// Makes a link to an absolute path. Never fails on request.
  void make_link(const std::filesystem::path& path, const std::filesystem::path& target);

  /// Called before each operation, with its name and path, for what others do meanwhile; it may
  /// call this object, which does not call it again for that. Not copied.
  std::function<void(const std::string& operation, const std::filesystem::path& path)> meanwhile;

  std::unique_ptr<File> create(const std::filesystem::path& path) override;
  std::unique_ptr<File> open(const std::filesystem::path& path) override;
  std::unique_ptr<Directory> open_directory(const std::filesystem::path& path) override;
  std::optional<Entry> stat(const std::filesystem::path& path) override;
  std::vector<std::string> list(const std::filesystem::path& directory) override;
  void make_directory(const std::filesystem::path& path) override;
  void rename(const std::filesystem::path& from, const std::filesystem::path& to) override;
  void remove(const std::filesystem::path& path) override;
  void sync_directory(const std::filesystem::path& directory) override;

 private:
  struct Node;
  class OpenFile;
  class OpenDirectory;
  class Lock;
  class Map;
  using NodePtr = std::shared_ptr<Node>;
  using Names = std::map<std::string, NodePtr>;

  static std::vector<std::string> names_of(const Node& directory);
  static void remove_from(Node& directory, const std::filesystem::path& path);
  static void make_in(Node& directory, const char* operation, const std::filesystem::path& path,
                      NodePtr node);
  static void rename_in(Node& from_directory, const std::filesystem::path& from, Node& to_directory,
                        const std::filesystem::path& to);
  std::unique_lock<std::mutex> begin(const char* operation, const std::filesystem::path& path);
  void count(const char* operation, const std::filesystem::path& path);
  NodePtr find(const std::filesystem::path& path) const;
  NodePtr followed(NodePtr node) const;
  Node& parent(const char* operation, const std::filesystem::path& path) const;
  Node& existing(const char* operation, const std::filesystem::path& path) const;

  mutable std::mutex mutex_;
  std::atomic<bool> is_interrupted_ = false;  ///< `meanwhile` runs
  NodePtr root_;
  std::set<std::pair<const Node*, std::string>> locked_;  ///< directory, name
  std::int64_t operations_ = 0;
  std::int64_t bytes_read_ = 0;
  std::int64_t fail_at_ = -1;
  Fault fault_ = Fault::kError;
};

}  // namespace embertable::checkpoint
