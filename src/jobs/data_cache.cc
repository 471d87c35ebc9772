#include "jobs/data_cache.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <span>
#include <type_traits>

#include "base/hash.h"
#include "embertable/errors.h"

namespace embertable::jobs {
namespace {

// "EMBCACHE", a number that changes with what follows, the key, the data set, and 32 digits of
// XXH3-128 of all before. A vector is its length and its elements, as this machine has them.
constexpr std::array<char, 16> kMagic = {'E', 'M', 'B', 'C', 'A', 'C', 'H', 'E', 1};
constexpr std::size_t kDigits = 32;

using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

/// Which file it is, as far as can be said without reading it.
std::string stamp(const std::string& path) {
  struct stat found = {};
  if (stat(path.c_str(), &found) != 0) return path + " is missing";
  return fmt::format("{} {} {}.{:09}", path, found.st_size, found.st_mtim.tv_sec,
                     found.st_mtim.tv_nsec);
}

std::string describe(const FileSpec& file, const std::string& root) {
  std::string text = fmt::format("{:?} {} {} {:?}", std::string(1, file.format.separator),
                                 file.format.header, file.format.trim, file.format.comment);
  for (const std::string& path : paths_in(root, file.paths)) text += " " + stamp(path);
  return text;
}

std::string describe(const IdsSpec& ids, const std::string& root) {
  const KeyRules& rules = ids.rules;
  return fmt::format("{:?} {} {} {} {} {:?} {:?} {} {} {} {} {:?} {:?}\n", ids.name, ids.columns,
                     ids.buckets, static_cast<int>(rules.kind), static_cast<int>(rules.order),
                     rules.separator, rules.missing, rules.by_column, rules.min_count,
                     rules.hash_rows, describe(ids.file, root), ids.key, ids.of);
}

std::string describe(const RecordsSpec& records, const DataOptions& options) {
  const DataSpec& data = records.data;
  const SplitSpec& split = records.split;
  std::string text = fmt::format(
      "{}\n{} {} {} {} {} {}\n{} {} {} {} {}\n", describe(data.file, options.root), data.label,
      data.lowest, data.highest, data.binary, data.positive, data.negative, split.columns,
      split.salt, split.train_on_validation, split.validation_buckets, options.skip_bad);
  for (const std::string& path : paths_in(options.root, split.test_paths))
    text += stamp(path) + "\n";
  for (const IdsSpec& ids : records.ids) text += describe(ids, options.root);
  return text;
}

/// Writes what it is given, and hashes it. Fails silently until `finish`.
class Writer {
 public:
  explicit Writer(const std::string& path) : file_(std::fopen(path.c_str(), "wbx"), std::fclose) {}

  void bytes(std::span<const std::byte> bytes) {
    hasher_.update(bytes);
    good_ =
        good_ && file_ && std::fwrite(bytes.data(), 1, bytes.size(), file_.get()) == bytes.size();
  }
  template <class Number>
  void number(const Number& value) {
    static_assert(std::is_trivially_copyable_v<Number>);
    bytes(std::as_bytes(std::span(&value, 1)));
  }
  template <class Vector>
  void vector(const Vector& values) {
    number(static_cast<std::uint64_t>(values.size()));
    bytes(std::as_bytes(std::span(values)));
  }

  /// Whether all of it is on its way to the disk.
  bool finish() {
    const std::string digits = hasher_.hex();
    bytes(std::as_bytes(std::span(digits)));
    return good_ && std::fflush(file_.get()) == 0 && fsync(fileno(file_.get())) == 0;
  }

 private:
  File file_;
  Hasher hasher_;
  bool good_ = true;
};

/// Reads it back; what is not there is zeros, or empty.
class Reader {
 public:
  explicit Reader(const std::string& path) : file_(std::fopen(path.c_str(), "rb"), std::fclose) {
    struct stat found = {};
    if (file_ && fstat(fileno(file_.get()), &found) == 0)
      left_ = static_cast<std::uint64_t>(found.st_size);
  }

  bool bytes(std::span<std::byte> bytes) {
    good_ = good_ && file_ && bytes.size() <= left_ &&
            std::fread(bytes.data(), 1, bytes.size(), file_.get()) == bytes.size();
    if (good_) {
      left_ -= bytes.size();
      hasher_.update(bytes);
    }
    return good_;
  }
  template <class Number>
  Number number() {
    Number value = {};
    bytes(std::as_writable_bytes(std::span(&value, 1)));
    return value;
  }
  template <class Vector>
  void vector(Vector& values) {
    const auto size = number<std::uint64_t>();
    good_ = good_ && size <= left_ / sizeof(values[0]);
    values.resize(good_ ? size : 0);
    bytes(std::as_writable_bytes(std::span(values)));
  }

  /// Whether all of it is as it was written.
  bool finish() {
    const std::string expected = hasher_.hex();
    std::string digits(kDigits, '\0');
    return bytes(std::as_writable_bytes(std::span(digits))) && digits == expected && left_ == 0;
  }
  bool good() const noexcept { return good_; }

 private:
  File file_;
  std::uint64_t left_ = 0;
  Hasher hasher_;
  bool good_ = true;
};

void write_column(Writer& writer, const IdColumn& column) {
  writer.vector(column.name);
  writer.vector(column.keys.id_map().to_bytes());
  for (const std::int32_t number : {column.cell, column.width, column.owner}) writer.number(number);
  writer.vector(column.lists.splits);
  writer.vector(column.lists.ids);
  writer.number(column.lists.longest);
  writer.number(column.lists.without);
}

/// `keys`: those of the column, as bytes.
IdColumn read_column(Reader& reader, std::string& keys) {
  IdColumn column;
  reader.vector(column.name);
  reader.vector(keys);
  for (std::int32_t* number : {&column.cell, &column.width, &column.owner})
    *number = reader.number<std::int32_t>();
  reader.vector(column.lists.splits);
  reader.vector(column.lists.ids);
  column.lists.longest = reader.number<std::int64_t>();
  column.lists.without = reader.number<std::int64_t>();
  return column;
}

}  // namespace

std::string cache_of(const std::filesystem::path& out) {
  if (out.empty()) return "";
  const std::filesystem::path path = out.lexically_normal();
  return (path.has_filename() ? path : path.parent_path()).string() + ".cache";
}

DataCache::DataCache(const RecordsSpec& records, const DataOptions& options)
    : path_((std::filesystem::path(options.cache) / "records.bin").string()) {
  const std::string text = describe(records, options);
  key_ = hash_hex(std::as_bytes(std::span(text)));
}

std::optional<DataSet> DataCache::read() const {
  Reader reader(path_);
  std::string key(kDigits, '\0');
  if (reader.number<std::array<char, 16>>() != kMagic ||
      !reader.bytes(std::as_writable_bytes(std::span(key))) || key != key_)
    return std::nullopt;
  DataSet data;
  data.samples.stride = reader.number<std::int64_t>();
  reader.vector(data.samples.cells);
  reader.vector(data.part);
  data.left_out = reader.number<std::int64_t>();
  std::vector<std::string> keys;
  for (auto left = reader.number<std::uint64_t>(); reader.good() && left > 0; --left)
    data.columns.push_back(read_column(reader, keys.emplace_back()));
  if (!reader.finish()) return std::nullopt;
  // Only what is known to be whole is worth its memory.
  for (std::size_t i = 0; i < keys.size(); ++i)
    data.columns[i].keys = Vocabulary(IdMap::from_bytes(keys[i]));
  return data;
}

void DataCache::write(const DataSet& data) const {
  std::error_code ignored;
  std::filesystem::create_directories(std::filesystem::path(path_).parent_path(), ignored);
  const std::string temporary = fmt::format("{}.{}", path_, getpid());
  std::filesystem::remove(temporary, ignored);
  Writer writer(temporary);
  writer.number(kMagic);
  writer.bytes(std::as_bytes(std::span(key_)));
  writer.number(data.samples.stride);
  writer.vector(data.samples.cells);
  writer.vector(data.part);
  writer.number(data.left_out);
  writer.number(static_cast<std::uint64_t>(data.columns.size()));
  for (const IdColumn& column : data.columns) write_column(writer, column);
  if (writer.finish()) {
    std::filesystem::rename(temporary, path_, ignored);
  } else {
    std::filesystem::remove(temporary, ignored);
  }
}

}  // namespace embertable::jobs
