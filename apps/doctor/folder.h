#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "checkpoint/file.h"

namespace embertable::doctor {

/// What runs need of a folder, and whether it worked there.
struct Tried {
  std::string what;   ///< "rename"
  std::string error;  ///< "" if it worked
};

struct Folder {
  std::filesystem::path path;
  std::string type;  ///< type of the file system, such as "ext4"; "" where it is not known
  std::int64_t free_bytes = 0;
  std::string unusable;  ///< why nothing could be tried; "" if something was
  std::vector<Tried> tried;
};

/// Does in a folder what saving, locking and mapping a run do, in a new folder of a hidden name
/// that it removes again.
Folder look_at_folder(const std::filesystem::path& path,
                      checkpoint::FileSystem& files = checkpoint::local_files());

}  // namespace embertable::doctor
