#include "embertable/checkpoint.h"

#include <utility>

#include "checkpoint/digest.h"
#include "checkpoint/file.h"
#include "checkpoint/reader.h"
#include "checkpoint/run_directory.h"
#include "embertable/errors.h"

namespace embertable {

using checkpoint::local_files;
using checkpoint::Reader;

CheckpointRun::CheckpointRun(std::filesystem::path directory)
    : run_(std::make_unique<checkpoint::OpenRun>(local_files(), std::move(directory))) {}
CheckpointRun::CheckpointRun(CheckpointRun&&) noexcept = default;
CheckpointRun& CheckpointRun::operator=(CheckpointRun&&) noexcept = default;
CheckpointRun::~CheckpointRun() = default;

const checkpoint::OpenRun& checkpoint::open_run(const CheckpointRun& run) { return *run.run_; }

const std::filesystem::path& CheckpointRun::directory() const noexcept { return run_->directory(); }

std::vector<std::int64_t> CheckpointRun::steps() const {
  return checkpoint::list_steps(run_->files(), run_->directory());
}

void CheckpointRun::keep(std::int64_t newest) {
  if (newest < 1) throw ValueError("keep: newest must be >= 1, got " + std::to_string(newest));
  checkpoint::keep_newest(*run_, newest);
}

std::filesystem::path find_checkpoint(const std::filesystem::path& path) {
  return Reader(local_files(), path).directory();
}

SavedState read_saved_state(const std::filesystem::path& path) {
  const Reader reader(local_files(), path);
  return {.step = reader.manifest().step, .caller = reader.caller_state()};
}

std::string digest_checkpoint(const std::filesystem::path& path) {
  return checkpoint::digest(Reader(local_files(), path));
}

void verify_checkpoint(const std::filesystem::path& path) { Reader(local_files(), path).verify(); }

}  // namespace embertable
