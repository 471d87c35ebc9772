#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace embertable::formats {

/// Magic number at the end of every sorted string table. Source: LevelDB, doc/table_format.md.
inline constexpr std::uint64_t kTableMagic = 0xdb4775248b80fb57u;
inline constexpr std::size_t kTableFooterBytes = 48;

/// How a block of a table is stored.
enum class BlockType : std::uint8_t { kPlain = 0, kSnappy = 1 };

/// Iterates over the entries of one block of a table; checks each, and that keys do not fall. The
/// time is linear in the bytes of the block, even for long keys that share most of them.
class BlockCursor {
 public:
  /// `entries` excludes the restarts and is borrowed.
  explicit BlockCursor(std::string_view entries) : entries_(entries) {}

  /// Moves to the next entry; the first call moves to the first. Returns false at the end. Throws
  /// BadEntry.
  bool next();

  std::string_view key() const noexcept { return key_; }
  std::string_view value() const noexcept { return value_; }

  /// Returns where this entry begins, and how many bytes its key shares with the key before.
  std::size_t offset() const noexcept { return offset_; }
  std::size_t shared() const noexcept { return shared_; }

  struct BadEntry {};

 private:
  std::string_view entries_;
  std::size_t end_ = 0;  ///< end of this entry
  std::size_t offset_ = 0;
  std::size_t shared_ = 0;
  std::string key_;
  std::string_view value_;
};

/// A sorted string table in memory: keys in rising order of their bytes, a value for each. Of equal
/// keys the first counts. Immutable; any number of threads may read.
class StringTable {
 public:
  /// Checks all of it: footer, checksum of every block, every entry, their order. Compressed blocks
  /// are decompressed. `path` is for messages. Throws DataLoss.
  StringTable(std::string bytes, std::filesystem::path path);
  StringTable(const StringTable&) = delete;
  StringTable& operator=(const StringTable&) = delete;

  /// Returns a value that lives as long as the table.
  std::optional<std::string_view> find(std::string_view key) const;

  using Visit = std::function<void(std::string_view key, std::string_view value)>;

  /// Calls `visit` for each entry, keys rising. The key lives until `visit` returns, the value as
  /// long as the table.
  void each(const Visit& visit) const;

  std::size_t bytes() const noexcept { return bytes_.size(); }

 private:
  struct Block {
    std::uint64_t offset = 0;  ///< in the file
    std::string_view entries;
    std::vector<std::uint32_t> restarts;  ///< rising; entries there have whole keys
  };

  [[noreturn]] void refuse(const std::string& what) const;
  [[noreturn]] void refuse_block(std::uint64_t offset, const std::string& what) const;
  Block read_block(std::string_view handle, std::uint64_t& end);
  std::string_view contents_of(std::string_view block, BlockType type, std::uint64_t offset);
  Block take_apart(std::string_view contents, std::uint64_t offset) const;
  bool next(BlockCursor& entry, const Block& block) const;
  void read_blocks();
  void check(const Block& block, std::string_view index_key, std::string& last,
             std::size_t& key_bytes) const;
  static std::string_view key_at(const Block& block, std::size_t restart);
  static std::string_view first_key(const Block& block) { return key_at(block, 0); }

  const std::string bytes_;
  const std::filesystem::path path_;
  std::deque<std::string> decompressed_;
  std::vector<Block> blocks_;  ///< none is empty
};

/// How a table is laid out.
struct TableLayout {
  std::size_t block_bytes = 262144;  ///< a block ends once it has this size
  std::size_t restart_every = 16;    ///< entries; those between share bytes with the one before
  BlockType type = BlockType::kPlain;
};

/// Writes a sorted string table, byte for byte as TensorFlow's tensor bundle does.
/// Source: TF tsl/lib/io/table_builder.cc, block_builder.cc.
class StringTableWriter {
 public:
  explicit StringTableWriter(TableLayout layout = {}) : layout_(layout) {}

  /// Requires: `key` is above all before it.
  void add(std::string_view key, std::string_view value);

  /// Returns the table. The writer must not be used afterwards.
  std::string finish();

 private:
  struct BlockBytes {
    std::string entries;
    std::vector<std::uint32_t> restarts;
    std::size_t since_restart = 0;
    std::string last_key;
    void add(std::string_view key, std::string_view value, std::size_t restart_every);
    std::string finish();
  };

  void end_block();
  void index_last_block(std::string_view key);
  std::string write_block(std::string contents);

  TableLayout layout_;
  std::string bytes_;
  BlockBytes block_, index_{};
  std::string last_key_;
  std::string pending_handle_;  ///< handle of a block that the index does not have yet
};

}  // namespace embertable::formats
