#include "embertable/checkpoint.h"

#include <exception>
#include <utility>

#include "checkpoint/digest.h"
#include "checkpoint/file.h"
#include "checkpoint/reader.h"
#include "checkpoint/run_directory.h"
#include "checkpoint/safetensors.h"
#include "embertable/errors.h"
#include "embertable/shape.h"
#include "embertable/strategy.h"
#include "exchange/or_abort.h"

namespace embertable {

using checkpoint::local_files;
using checkpoint::Reader;

void DenseTensor::require(std::string_view type) const {
  if (dtype != type)
    throw TypeError("dense tensor: elements must be " + std::string(type) + ", got " + dtype);
  const std::int64_t wanted = checkpoint::tensor_bytes(dtype, shape);
  const std::string subject = "dense tensor: " + dtype + " " + Shape(shape).to_string();
  if (wanted < 0) throw ValueError(subject + " must be a shape of less than 2^63 bytes");
  if (std::ssize(bytes) != wanted) {
    throw ValueError(subject + " must have " + std::to_string(wanted) + " bytes, got " +
                     std::to_string(bytes.size()));
  }
}

CheckpointRun::CheckpointRun(std::filesystem::path directory)
    : directory_(std::move(directory)),
      run_(std::make_unique<checkpoint::OpenRun>(local_files(), directory_)) {}

CheckpointRun::CheckpointRun(std::filesystem::path directory, const EngineStrategy& strategy)
    : directory_(std::move(directory)) {
  Exchange* const exchange =
      strategy.is_one_of_several() ? strategy.options().exchange.get() : nullptr;
  std::exception_ptr failed;
  std::string error;
  if (strategy.first_host() == 0) {
    try {
      run_ = std::make_unique<checkpoint::OpenRun>(local_files(), directory_);
    } catch (const std::exception& caught) {
      failed = std::current_exception();
      error = caught.what();
    }
  }
  try {
    if (exchange != nullptr) exchange->agree(error);
  } catch (const StateError&) {
    if (!failed) throw;
  } catch (const std::exception& of_exchange) {
    tell(*exchange, of_exchange.what());
    if (!failed) throw;
  }
  if (failed) std::rethrow_exception(failed);
}

CheckpointRun::CheckpointRun(CheckpointRun&&) noexcept = default;
CheckpointRun& CheckpointRun::operator=(CheckpointRun&&) noexcept = default;
CheckpointRun::~CheckpointRun() = default;

const checkpoint::OpenRun& checkpoint::open_run(const CheckpointRun& run) {
  if (!run.run_)
    throw StateError(run.directory().string() + ": only engines of several hosts save there");
  return *run.run_;
}

const std::filesystem::path& CheckpointRun::directory() const noexcept { return directory_; }

std::vector<std::int64_t> CheckpointRun::steps() const {
  return run_ ? checkpoint::list_steps(run_->opened())
              : checkpoint::list_steps(local_files(), directory_);
}

void CheckpointRun::keep(std::int64_t newest) {
  if (newest < 1) throw ValueError("keep: newest must be >= 1, got " + std::to_string(newest));
  if (run_) checkpoint::keep_newest(*run_, newest);
}

std::filesystem::path step_directory(const std::filesystem::path& run, std::int64_t step) {
  if (step < 0) throw ValueError("step must be >= 0, got " + std::to_string(step));
  return run / checkpoint::step_name(step);
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

void verify_checkpoint(const std::filesystem::path& path) {
  Reader reader(local_files(), path);
  if (!reader.skipped().empty()) throw DataLoss(reader.skipped().front());
  reader.verify();
}

}  // namespace embertable
