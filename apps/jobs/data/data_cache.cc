#include "apps/jobs/data/data_cache.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>

#include "base/hash.h"

namespace embertable::jobs {
namespace {

/// Rises with each change of the fields that are written, since they carry no names.
constexpr int kLayout = 3;

}  // namespace

std::string cache_of(const std::filesystem::path& out) {
  if (out.empty()) return "";
  std::filesystem::path path = out.lexically_normal();
  if (path.filename() == "." || path.filename() == "..")
    path = std::filesystem::weakly_canonical(path);
  return (path.has_filename() ? path : path.parent_path()).string() + ".cache";
}

DataCache::DataCache(const std::string& folder, const std::string& name,
                     const std::string& contents) {
  if (folder.empty()) return;
  std::string file = name + ".bin";
  std::replace(file.begin(), file.end(), '/', '_');
  path_ = (std::filesystem::path(folder) / file).string();
  const std::string with_layout = fmt::format("layout {}\n{}", kLayout, contents);
  key_ = hash_hex(std::as_bytes(std::span(with_layout)));
}

void DataCache::make_folder() const {
  std::error_code ignored;
  std::filesystem::create_directories(std::filesystem::path(path_).parent_path(), ignored);
}

bool are_lists(std::span<const std::int64_t> splits, std::span<const std::int32_t> values,
               std::int64_t lists, std::int64_t numbers) {
  return std::ssize(splits) == lists + 1 && splits.front() == 0 &&
         splits.back() == std::ssize(values) && std::is_sorted(splits.begin(), splits.end()) &&
         std::all_of(values.begin(), values.end(),
                     [&](std::int32_t value) { return value >= 0 && value < numbers; });
}

std::string file_stamps(std::span<const std::string> paths) {
  std::string text;
  for (const std::string& path : paths) {
    struct stat found = {};
    text += stat(path.c_str(), &found) != 0
                ? path + " is missing\n"
                : fmt::format("{} {} {}.{:09} {}.{:09} {} {}\n", path, found.st_size,
                              found.st_mtim.tv_sec, found.st_mtim.tv_nsec, found.st_ctim.tv_sec,
                              found.st_ctim.tv_nsec, found.st_dev, found.st_ino);
  }
  return text;
}

std::string describe(const CsvFormat& format) {
  return fmt::format("{:?} {} {} {:?}", std::string(1, format.separator), format.header,
                     format.trim, format.comment);
}

}  // namespace embertable::jobs
