#include "apps/jobs/run/check_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "checkpoint/block_file.h"
#include "checkpoint/manifest.h"
#include "checkpoint/run_directory.h"
#include "embertable/errors.h"

namespace embertable::jobs {
namespace {

namespace fs = std::filesystem;
using checkpoint::FileSystem;

/// Returns why the file cannot be trusted, or "".
std::string damage_of(FileSystem& files, const fs::path& directory,
                      const checkpoint::FileRecord& record) {
  try {
    checkpoint::BlockFile(files, directory, record).verify();
    return "";
  } catch (const IoError& error) {
    return error.what();
  }
}

CheckedStep check_step(FileSystem& files, const fs::path& directory) {
  const fs::path path = directory / checkpoint::kManifestName;
  CheckedStep step{directory, {{checkpoint::kManifestName, 0, 1, ""}}};
  if (!files.stat(path)) {
    step.files.front().damage = path.string() + ": cannot open: it is missing";
    return step;
  }
  checkpoint::Manifest manifest;
  try {
    const std::string text = checkpoint::read_file(files, path, checkpoint::kMaxManifestBytes);
    step.files.front().bytes = static_cast<std::int64_t>(text.size());
    manifest = checkpoint::parse_manifest(text, path);
  } catch (const DataLoss& loss) {
    step.files.front().damage = loss.what();
    return step;
  }
  for (const checkpoint::FileRecord& record : manifest.files) {
    step.files.push_back(
        {record.name, record.bytes, record.num_blocks(), damage_of(files, directory, record)});
  }
  return step;
}

}  // namespace

std::int64_t CheckedStep::num_damaged() const noexcept {
  return std::count_if(files.begin(), files.end(),
                       [](const CheckedFile& file) { return !file.damage.empty(); });
}

std::vector<CheckedStep> check_steps(const fs::path& path, bool all) {
  FileSystem& files = checkpoint::local_files();
  if (files.stat(path / checkpoint::kManifestName)) return {check_step(files, path)};
  std::vector<std::int64_t> steps = checkpoint::list_steps(files, path);
  if (steps.empty())
    throw IoError(fmt::format("{}: cannot open: there is no checkpoint", path.string()));
  if (!all) steps.erase(steps.begin(), steps.end() - 1);
  std::vector<CheckedStep> checked;
  for (const std::int64_t step : steps)
    checked.push_back(check_step(files, path / checkpoint::step_name(step)));
  return checked;
}

}  // namespace embertable::jobs
