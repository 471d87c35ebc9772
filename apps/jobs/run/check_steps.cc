#include "apps/jobs/run/check_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "apps/jobs/run/best_epoch.h"
#include "base/byte_watch.h"
#include "checkpoint/block_file.h"
#include "checkpoint/manifest.h"
#include "checkpoint/run_directory.h"
#include "embertable/errors.h"

namespace embertable::jobs {
namespace {

namespace fs = std::filesystem;
using checkpoint::FileSystem;

/// Returns why the file cannot be trusted, or "".
std::string damage_of(checkpoint::Directory& opened, const fs::path& directory,
                      const checkpoint::FileRecord& record) {
  const fs::path path = directory / record.name;
  try {
    std::shared_ptr<const checkpoint::File> file = opened.open_file(record.name);
    if (!file) return path.string() + ": cannot open: it is missing";
    checkpoint::BlockFile(std::move(file), path, record).verify();
    return "";
  } catch (const IoError& error) {
    return error.what();
  }
}

CheckedStep check_files(checkpoint::Directory& opened, const fs::path& directory) {
  const fs::path path = directory / checkpoint::kManifestName;
  CheckedStep step{directory, {{checkpoint::kManifestName, 0, 1, ""}}};
  const std::unique_ptr<checkpoint::File> file = opened.open_file(checkpoint::kManifestName);
  if (!file) {
    step.files.front().damage = path.string() + ": cannot open: it is missing";
    return step;
  }
  checkpoint::Manifest manifest;
  try {
    const std::string text = checkpoint::read_file(*file, path, checkpoint::kMaxManifestBytes);
    step.files.front().bytes = static_cast<std::int64_t>(text.size());
    manifest = checkpoint::parse_manifest(text, path);
  } catch (const DataLoss& loss) {
    step.files.front().damage = loss.what();
    return step;
  }
  for (const checkpoint::FileRecord& record : manifest.files) ByteWatch::expect(record.bytes);
  for (const checkpoint::FileRecord& record : manifest.files) {
    step.files.push_back(
        {record.name, record.bytes, record.num_blocks(), damage_of(opened, directory, record)});
  }
  return step;
}

/// Returns the text of a step's manifest, empty if it cannot be read.
std::string manifest_text(FileSystem& files, const fs::path& directory) {
  try {
    return checkpoint::read_file(files, directory / checkpoint::kManifestName,
                                 checkpoint::kMaxManifestBytes);
  } catch (const std::exception&) {
    return "";
  }
}

CheckedStep check_named(FileSystem& files, const fs::path& directory) {
  const auto found = files.stat(directory);
  if (found && found->directory) return check_files(*files.open_directory(directory), directory);
  return {.directory = directory,
          .files = {{checkpoint::kManifestName, 0, 0, "cannot open: the step is no directory"}}};
}

/// Empty if the step is removed before or while it is read: nothing of it is damaged. A step that
/// is saved anew meanwhile is read anew.
std::optional<CheckedStep> check_step(FileSystem& files, const fs::path& directory) {
  for (;;) {
    if (!fs::exists(fs::symlink_status(directory))) return std::nullopt;
    const std::string before = manifest_text(files, directory);
    try {
      CheckedStep step = check_named(files, directory);
      if (step.num_damaged() == 0 || manifest_text(files, directory) == before) {
        const bool is_there = fs::exists(fs::symlink_status(directory));
        return is_there || step.num_damaged() == 0 ? std::optional(std::move(step)) : std::nullopt;
      }
    } catch (const IoError&) {  // it went between the look and the opening
      if (fs::exists(fs::symlink_status(directory))) throw;
    }
  }
}

/// Checks the highest step of a run, or all. Returns none if there is none, or none any longer.
std::vector<CheckedStep> check_run(FileSystem& files, const fs::path& run, bool all) {
  std::vector<CheckedStep> checked;
  std::set<std::int64_t> removed;
  while (checked.empty()) {
    std::vector<std::int64_t> steps = checkpoint::list_steps(files, run);
    std::erase_if(steps, [&](std::int64_t step) { return removed.contains(step); });
    if (steps.empty()) break;
    if (!all) steps.erase(steps.begin(), steps.end() - 1);
    removed.insert(steps.begin(), steps.end());
    for (const std::int64_t step : steps)
      if (auto one = check_step(files, run / checkpoint::step_name(step)))
        checked.push_back(*std::move(one));
  }
  return checked;
}

}  // namespace

std::int64_t CheckedStep::num_damaged() const noexcept {
  return std::count_if(files.begin(), files.end(),
                       [](const CheckedFile& file) { return !file.damage.empty(); });
}

std::vector<CheckedStep> check_steps(const fs::path& path, bool all) {
  FileSystem& files = checkpoint::local_files();
  if (files.stat(path / checkpoint::kManifestName)) {
    if (auto step = check_step(files, path)) return {*std::move(step)};
    throw IoError(fmt::format("{}: cannot read: the step was removed", path.string()));
  }
  std::vector<CheckedStep> checked = check_run(files, path, all);
  if (checked.empty())
    throw IoError(fmt::format("{}: cannot open: there is no checkpoint", path.string()));
  const fs::path best = path / BestEpoch::kFolder;
  if (const auto found = files.stat(best); found && found->directory)
    for (CheckedStep& step : check_run(files, best, all)) checked.push_back(std::move(step));
  return checked;
}

}  // namespace embertable::jobs
