#pragma once

#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <utility>

#include "checkpoint/file.h"
#include "formats/bundle_messages.h"

namespace embertable::formats {

/// Gives data files their names and then writes the index, which makes them a checkpoint. What the
/// prefix had before goes first, its index before its data, so that no index ever stands beside
/// data of another checkpoint. `renamed`: from, to; the contents are flushed already. Throws
/// IoError.
void commit_bundle(
    checkpoint::FileSystem& files, const std::filesystem::path& prefix, const BundleHeader& header,
    const std::map<std::string, BundleEntry>& entries,
    std::span<const std::pair<std::filesystem::path, std::filesystem::path>> renamed);

}  // namespace embertable::formats
