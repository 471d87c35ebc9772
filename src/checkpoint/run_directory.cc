#include "checkpoint/run_directory.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <utility>

#include "checkpoint/reader.h"
#include "embertable/errors.h"

namespace embertable::checkpoint {
namespace {

constexpr std::string_view kPrefix = "step_";
constexpr std::size_t kDigits = 12;

}  // namespace

std::string step_name(std::int64_t step) {
  const std::string digits = std::to_string(step);
  return std::string(kPrefix) +
         std::string(digits.size() < kDigits ? kDigits - digits.size() : 0, '0') + digits;
}

std::optional<std::int64_t> parse_step_name(std::string_view name) {
  if (!name.starts_with(kPrefix)) return std::nullopt;
  const std::string_view digits = name.substr(kPrefix.size());
  std::int64_t step = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), step);
  if (error != std::errc() || step < 0 || step_name(step) != name) return std::nullopt;
  return step;
}

bool is_temporary_name(std::string_view name) {
  return name.starts_with(".step_") && name.find("_tmp-") != std::string_view::npos;
}

bool has_name(Directory& run, const std::string& name) {
  const std::vector<std::string> names = run.list();
  return std::binary_search(names.begin(), names.end(), name);
}

std::string temporary_name(Directory& run, std::int64_t step) {
  const std::string base = "." + step_name(step) + "_tmp-" + std::to_string(::getpid());
  std::string name = base;
  for (int k = 1; has_name(run, name); ++k) name = base + "-" + std::to_string(k);
  return name;
}

std::vector<std::int64_t> list_steps(Directory& run) {
  std::vector<std::int64_t> steps;
  for (const std::string& name : run.list())
    if (const auto step = parse_step_name(name)) steps.push_back(*step);
  std::sort(steps.begin(), steps.end());
  return steps;
}

std::vector<std::int64_t> list_steps(FileSystem& files, const std::filesystem::path& run) {
  const auto found = files.stat(run);
  if (!found || !found->directory) return {};
  return list_steps(*files.open_directory(run));
}

bool seen_in_time(FunctionRef<bool()> is_there) {
  constexpr auto kPatience = std::chrono::seconds(3);
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (!is_there()) {
    if (std::chrono::steady_clock::now() >= end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return true;
}

void remove_leftovers(Directory& run) {
  // A replaced step has a temporary name. It may only be removed once its own name is seen to be
  // the new step.
  run.sync();
  for (const std::string& name : run.list()) {
    if (!is_temporary_name(name)) continue;
    try {
      remove_all(run, name);
    } catch (const IoError&) {  // perhaps not ours; it does no harm
    }
  }
}

void ChangeMutex::lock() {
  if (owner_.load(std::memory_order_relaxed) == std::this_thread::get_id())
    throw StateError("a run cannot be changed by a function that a save to it calls");
  mutex_.lock();
  owner_.store(std::this_thread::get_id(), std::memory_order_relaxed);
}

void ChangeMutex::unlock() noexcept {
  owner_.store(std::thread::id(), std::memory_order_relaxed);
  mutex_.unlock();
}

OpenRun::OpenRun(FileSystem& files, std::filesystem::path directory)
    : files_(files), directory_(std::move(directory)) {
  make_directories(files_, directory_);
  opened_ = files_.open_directory(directory_);
  lock_ = opened_->lock(kLockName);
}

void keep_newest(const OpenRun& run, std::int64_t newest) {
  const std::lock_guard alone(run.changing());
  // The names of the remaining steps must be durable before others are removed.
  run.opened().sync();
  const std::vector<std::int64_t> steps = list_steps(run.opened());
  auto kept = steps.rbegin();
  for (std::int64_t complete = 0; kept != steps.rend() && complete < newest; ++kept)
    if (!refusal_of_step(run.opened(), run.directory(), *kept)) ++complete;
  for (auto step = steps.begin(); step != kept.base(); ++step) remove_step(run.opened(), *step);
}

void remove_step(Directory& run, std::int64_t step) {
  const std::string aside = temporary_name(run, step);
  run.rename(step_name(step), aside);
  run.sync();
  remove_all(run, aside);
}

}  // namespace embertable::checkpoint
