#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "checkpoint/file.h"
#include "testing/saved_tables.h"
#include "testing/temporary_directory.h"

namespace embertable::fuzz {

/// The files of a small checkpoint, by name.
inline std::map<std::string, std::string> saved_files() {
  using namespace checkpoint;  // NOLINT: what it is all about
  const TemporaryDirectory temporary;
  const Manifest manifest = test_manifest(2, Sharding::kMod);
  const auto step = save(local_files(), temporary.path(), manifest, test_shards(manifest),
                         test_caller(), {{"ads", "map"}});
  std::map<std::string, std::string> files;
  for (const std::string& name : local_files().list(step))
    files[name] = read_file(local_files(), step / name, kMaxManifestBytes);
  return files;
}

}  // namespace embertable::fuzz
