#include "apps/convert/keys_file.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <string_view>

#include "apps/convert/printable.h"
#include "checkpoint/new_file.h"
#include "embertable/errors.h"

namespace embertable::jobs {
namespace {

[[noreturn]] void refuse(const std::filesystem::path& path, std::int64_t line,
                         const std::string& what) {
  throw ValueError(fmt::format("{}:{}: {}", path.string(), line, what));
}

/// Returns the key that a line has. Throws ValueError.
std::string key_of(std::string_view line, const std::filesystem::path& path, std::int64_t number) {
  std::string key;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] != '\\') {
      key += line[i];
      continue;
    }
    const char c = ++i < line.size() ? line[i] : '\0';
    if (c != '\\' && c != 'n' && c != 'r')
      refuse(
          path, number,
          fmt::format(R"(a backslash must be followed by \, n or r, got '{}')", printable(line)));
    key += c == 'n' ? '\n' : c == 'r' ? '\r' : c;
  }
  return key;
}

}  // namespace

std::filesystem::path keys_path(const std::filesystem::path& array) {
  return std::filesystem::path(array).replace_extension(".keys.txt");
}

void write_keys(const std::filesystem::path& path, std::int64_t rows,
                const std::function<std::string(std::int64_t row)>& key) {
  constexpr std::size_t kAtOnce = 1 << 20;
  checkpoint::NewFile file(checkpoint::local_files(), path);
  std::string lines;
  for (std::int64_t row = 0; row < rows; ++row) {
    for (const char c : key(row)) {
      if (c == '\\' || c == '\n' || c == '\r') lines += '\\';
      lines += c == '\n' ? 'n' : c == '\r' ? 'r' : c;
    }
    lines += '\n';
    if (lines.size() < kAtOnce) continue;
    file.write(checkpoint::bytes_of(lines));
    lines.clear();
  }
  file.write(checkpoint::bytes_of(lines));
  file.commit();
}

IdMap read_keys(const std::filesystem::path& path, std::int64_t rows) {
  std::ifstream file(path, std::ios::binary);
  if (!file)
    throw IoError(fmt::format("'{}': cannot open: {}", path.string(), std::strerror(errno)));
  IdMapBuilder keys(KeyKind::kString);
  std::int64_t number = 0;  // the number of lines so far
  const auto add = [&](const std::string& key) {
    const std::int64_t before = keys.num_keys();
    keys.add(key);
    if (keys.num_keys() == before)
      refuse(path, number, fmt::format("a key must name one row, got '{}' again", printable(key)));
  };
  std::int64_t empty = 0;  // lines since the last key
  for (std::string line; std::getline(file, line);) {
    ++number;
    if (line.ends_with('\r')) line.pop_back();  // an editor wrote it: that of a key is escaped
    if (line.empty()) {
      ++empty;
      continue;
    }
    for (; empty > 0; --empty) add("");  // a key behind it says that this is one too
    add(key_of(line, path, number));
  }
  if (file.bad()) throw IoError(fmt::format("'{}': cannot read", path.string()));
  if (number != rows)
    refuse(path, number,
           fmt::format("there must be a line for each of {} rows, got {}", rows, number));
  return keys.build({.out_of_vocabulary_rows = empty});
}

}  // namespace embertable::jobs
