#include "formats/bundle_commit.h"

#include "formats/bundle_files.h"
#include "formats/new_file.h"
#include "formats/string_table.h"

namespace embertable::formats {

namespace fs = std::filesystem;
using checkpoint::FileSystem;

namespace {

std::string index_bytes(const BundleHeader& header,
                        const std::map<std::string, BundleEntry>& entries) {
  StringTableWriter table;
  table.add("", serialize(header));
  for (const auto& [key, entry] : entries) table.add(key, serialize(entry));
  return table.finish();
}

void remove_old(FileSystem& files, const fs::path& prefix) {
  const fs::path directory = checkpoint::directory_of(prefix);
  if (files.stat(index_path(prefix))) {
    files.remove(index_path(prefix));
    files.sync_directory(directory);
  }
  for (const std::string& name : files.list(directory))
    if (is_data_name(name, prefix.filename().string())) files.remove(directory / name);
}

}  // namespace

void commit_bundle(FileSystem& files, const fs::path& prefix, const BundleHeader& header,
                   const std::map<std::string, BundleEntry>& entries,
                   std::span<const std::pair<fs::path, fs::path>> renamed) {
  remove_old(files, prefix);
  for (const auto& [from, to] : renamed) files.rename(from, to);
  files.sync_directory(checkpoint::directory_of(prefix));
  NewFile index(files, index_path(prefix));
  index.write(checkpoint::bytes_of(index_bytes(header, entries)));
  index.commit();
}

}  // namespace embertable::formats
