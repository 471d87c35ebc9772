// Where the sources of the repository are, for tests that read them.
#pragma once

#include <string>
#include <string_view>

namespace embertable {

/// Absolute path of a file or folder of the checkout that this build is of. `relative` is empty for
/// the checkout itself.
std::string source_path(std::string_view relative);

}  // namespace embertable
