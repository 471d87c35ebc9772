#include "apps/jobs/sweep/sweep_directory.h"

#include <fmt/format.h>

#include <fstream>
#include <set>
#include <vector>

#include "embertable/errors.h"

namespace embertable::jobs {
namespace {

namespace fs = std::filesystem;

constexpr const char* kResults = "runs.jsonl";
constexpr const char* kRuns = "runs";
constexpr const char* kBest = "best";
constexpr const char* kCache = "data.cache";

/// Holds the directory of a sweep.
CheckpointRun open_directory(const SweepOptions& options) {
  if (options.out.empty()) throw ValueError("out must be a directory for the sweep, got none");
  if (options.resume && options.overwrite)
    throw ValueError("resume must be false where overwrite is true, got true");
  CheckpointRun held(options.out);
  const fs::path out = options.out;
  const auto is_ours = [](const std::string& name) {
    return name == kResults || name == kRuns || name == kBest || name == kCache;
  };
  for (const fs::directory_entry& entry : fs::directory_iterator(out)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with('.')) continue;
    if (!is_ours(name))
      throw ValueError(fmt::format(
          "out must be a new or an empty directory, or that of a sweep, got '{}' with '{}'",
          out.string(), name));
    if (!options.resume && !options.overwrite)
      throw ValueError(
          fmt::format("out must be a new or an empty directory, got '{0}', which holds a sweep; "
                      "{1}resume goes on with it, {1}overwrite removes it",
                      out.string(), options.option_prefix));
  }
  return held;
}

}  // namespace

SweepDirectory::SweepDirectory(const SweepOptions& options)
    : held_(open_directory(options)), out_(options.out) {}

void SweepDirectory::clear(std::span<const SweptRun> runs) const {
  fs::remove(results());
  fs::remove_all(best());
  std::set<fs::path> own;
  for (const SweptRun& one : runs) own.insert(run(one.id));
  std::vector<fs::path> others;
  for (const fs::directory_entry& entry : fs::directory_iterator(out_ / kRuns))
    if (!own.contains(entry.path())) others.push_back(entry.path());
  for (const fs::path& other : others) fs::remove_all(other);
}

fs::path SweepDirectory::results() const { return out_ / kResults; }
fs::path SweepDirectory::cache() const { return out_ / kCache; }
fs::path SweepDirectory::best() const { return out_ / kBest; }
fs::path SweepDirectory::run(const std::string& id) const {
  return out_ / kRuns / fmt::format("run-{}", id.substr(0, 12));
}

void SweepDirectory::prepare_best(const std::string& id) const {
  const fs::path note = best() / ".sweep-run";
  std::string held;
  std::ifstream(note) >> held;
  if (held != id) fs::remove_all(best());
  fs::create_directories(best());
  std::ofstream(note) << id << '\n';
}

}  // namespace embertable::jobs
