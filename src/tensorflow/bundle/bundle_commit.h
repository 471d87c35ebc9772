#pragma once

#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <utility>

#include "checkpoint/file.h"
#include "checkpoint/new_file.h"
#include "tensorflow/bundle/bundle_messages.h"

namespace embertable::formats {

/// Makes data files and a new index for them the checkpoint of a prefix. `renamed`: from, to; the
/// contents are already flushed.
///
/// The new index is written and flushed under a temporary name first. From then on only names
/// change, and no index ever stands beside data of another checkpoint:
///
/// 1. If an old data file has the name of a new one, the old index gets a temporary name, and so do
///    then the old data files of these names.
/// 2. New data files get their names.
/// 3. The new index gets its name, in place of the old index if that is still there.
/// 4. What else is left of the old checkpoint is removed. What cannot be removed stays.
///
/// The directory is flushed between these. What a reader of the prefix finds afterwards:
///
/// - After an error in 1, 2 or 3 the old checkpoint, since all names are changed back, those of
///   `renamed` too. Two exceptions: if only the last flush of 3 fails and the old index has been
///   replaced, it is the new checkpoint, and the error says so; if changing back fails too, it may
///   be none, and the old files are under "<path>.tempstate<random number>".
/// - After a kill or a loss of power the old checkpoint or the new one. It may be none only if an
///   old data file has the name of a new one: from 1 to 3 the old files are under temporary names.
///
/// Writers of one prefix wait for each other, in any process: the last one's checkpoint is there in
/// the end. Meanwhile there is a file ".<last part of the prefix>.lock".
///
/// `data`: a file of `renamed` that has no name before it takes its temporary one; or null.
///
/// Throws IoError; a directory that has the name of one of the files is such an error, and is
/// noticed before anything changes. Throws ValueError for an index that no reader would read.
void commit_bundle(checkpoint::FileSystem& files, const std::filesystem::path& prefix,
                   const BundleHeader& header, const std::map<std::string, BundleEntry>& entries,
                   std::span<const std::pair<std::filesystem::path, std::filesystem::path>> renamed,
                   checkpoint::NewFile* data = nullptr);

}  // namespace embertable::formats
