#include "tensorflow/bundle/bundle_commit.h"

#include <algorithm>
#include <memory>
#include <set>
#include <vector>

#include "checkpoint/new_file.h"
#include "embertable/errors.h"
#include "tensorflow/bundle/bundle_files.h"
#include "tensorflow/bundle/string_table.h"

namespace embertable::formats {

namespace fs = std::filesystem;
using checkpoint::FileSystem;

namespace {

std::string index_bytes(const BundleHeader& header,
                        const std::map<std::string, BundleEntry>& entries) {
  StringTableWriter table;
  table.add("", serialize(header));
  for (const auto& [key, entry] : entries) table.add(key, serialize(entry));
  std::string bytes = table.finish();
  if (std::ssize(bytes) > kMaxIndexBytes)
    throw ValueError("cannot save: the index would have " + std::to_string(bytes.size()) +
                     " bytes, at most " + std::to_string(kMaxIndexBytes) + " are read");
  return bytes;
}

/// Returns the names of the index and the data files of a prefix. Throws IoError for a directory.
std::set<std::string> names_of(checkpoint::Directory& opened, const fs::path& prefix) {
  const fs::path directory = checkpoint::directory_of(prefix);
  const std::string index = index_path(prefix).filename();
  std::set<std::string> names;
  for (const std::string& name : opened.list()) {
    if (name != index && !is_data_name(name, prefix.filename().string())) continue;
    checkpoint::refuse_directory(opened, directory / name);
    names.insert(name);
  }
  return names;
}

/// New names of files, which can all be undone.
class Renames {
 public:
  Renames(FileSystem& files, fs::path directory)
      : files_(files), directory_(std::move(directory)) {}

  void rename(const fs::path& from, const fs::path& to) {
    files_.rename(from, to);
    done_.emplace_back(from, to);
  }

  /// Gives a file a temporary name.
  void set_aside(const fs::path& path) {
    aside_.push_back(checkpoint::temporary_path(path));
    rename(path, aside_.back());
  }

  /// Returns the files that `set_aside` renamed.
  const std::vector<fs::path>& aside() const noexcept { return aside_; }

  /// Makes all renames final.
  void keep() noexcept { done_.clear(); }

  /// Undoes the renames, the last one first. Each is flushed before the next, because an old index
  /// must not come back earlier than its data, on disk either; so nothing follows an error.
  void undo() noexcept {
    try {
      for (; !done_.empty(); done_.pop_back()) {
        files_.rename(done_.back().second, done_.back().first);
        files_.sync_directory(directory_);
      }
    } catch (...) {  // the error that made this necessary is on its way
    }
  }

 private:
  FileSystem& files_;
  fs::path directory_;
  std::vector<std::pair<fs::path, fs::path>> done_;  ///< from, to
  std::vector<fs::path> aside_;
};

}  // namespace

void commit_bundle(FileSystem& files, const fs::path& prefix, const BundleHeader& header,
                   const std::map<std::string, BundleEntry>& entries,
                   std::span<const std::pair<fs::path, fs::path>> renamed,
                   checkpoint::NewFile* data) {
  const fs::path directory = checkpoint::directory_of(prefix), index = index_path(prefix);
  const std::unique_ptr<checkpoint::Directory> opened = files.open_directory(directory);
  const auto turn = opened->wait_for_lock("." + prefix.filename().string() + ".lock");
  std::set<std::string> old = names_of(*opened, prefix);
  const auto is_old = [&](const fs::path& path) { return old.contains(path.filename().string()); };
  const bool shares_names = std::any_of(renamed.begin(), renamed.end(),
                                        [&](const auto& names) { return is_old(names.second); });
  checkpoint::NewFile new_index(files, index);
  new_index.write(checkpoint::bytes_of(index_bytes(header, entries)));
  new_index.sync();

  Renames names(files, directory);
  try {
    if (shares_names && is_old(index)) {
      names.set_aside(index);
      files.sync_directory(directory);
    }
    for (const auto& [from, to] : renamed) {
      if (is_old(to)) names.set_aside(to);
      if (data != nullptr && data->temporary() == from) data->take_temporary_name();
      names.rename(from, to);
    }
    files.sync_directory(directory);
    new_index.take_temporary_name();
    names.rename(new_index.temporary(), index);
    if (shares_names || !is_old(index)) {
      files.sync_directory(directory);
    } else {  // the old index is replaced: there is no way back
      names.keep();
      checkpoint::flush_new_name(index, "has the new contents",
                                 [&] { files.sync_directory(directory); });
    }
  } catch (...) {
    names.undo();
    throw;
  }
  new_index.renamed();

  old.erase(index.filename().string());
  for (const auto& [from, to] : renamed) old.erase(to.filename().string());
  for (const std::string& name : old) checkpoint::try_remove(files, directory / name);
  for (const fs::path& path : names.aside()) checkpoint::try_remove(files, path);
}

}  // namespace embertable::formats
