#include "apps/convert/trained_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>

#include "checkpoint/reader.h"
#include "checkpoint/run_directory.h"
#include "embertable/errors.h"

namespace embertable::jobs {

void refuse_trained_run(const std::filesystem::path& out) {
  checkpoint::FileSystem& files = checkpoint::local_files();
  std::error_code none;
  if (!std::filesystem::is_directory(out, none) || checkpoint::list_steps(files, out).empty())
    return;
  const checkpoint::Reader newest(files, out);
  const bool trains = std::ranges::any_of(
      newest.manifest().tables, [](const auto& table) { return table.row_type != RowType::kInt8; });
  if (!trains || !newest.caller_state(false).blobs.contains("job.toml")) return;
  throw ValueError(fmt::format(
      "'{}' must not be a run of `embertable train`, which could not go on from this step",
      out.string()));
}

}  // namespace embertable::jobs
