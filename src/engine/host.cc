#include "engine/host.h"

#include <string>
#include <system_error>

#include "base/float_environment.h"
#include "embertable/errors.h"

namespace embertable::engine {
Host::Host(std::unique_ptr<Exchange> exchange, std::shared_ptr<Executor> executor,
           const Assembly& assembly, std::int32_t replicas_per_host,
           EmbeddingOptions::Tuning tuning, bool count_unique_ids)
    : exchange_(std::move(exchange)),
      executor_(std::move(executor)),
      assembly_(assembly),
      replicas_per_host_(replicas_per_host),
      tuning_(tuning),
      count_unique_ids_(count_unique_ids),
      level_(simd_level()),
      scratch_(executor_->workers()),
      updates_(assembly.tables.size()),
      pieces_(assembly.tables.size()),
      touched_(assembly.tables.size()),
      sums_(assembly.tables.size()),
      unique_(assembly.tables.size()),
      worked_(executor_->workers()),
      unique_share_(assembly.tables.size(), 1.0),
      seen_(assembly.tables.size()) {
  statistics_.tables.resize(assembly.tables.size());
}

std::int32_t Host::region(std::int64_t items, std::int64_t floats,
                          FunctionRef<void(const WorkItem&)> body) {
  if (floats < tuning_.inline_floats || items == 1) {
    const FloatEnvironment ours;
    for (std::int64_t i = 0; i < items; ++i) body({i, i + 1 < items ? i + 1 : -1, 0});
    return items > 0 ? 1 : 0;
  }
  for (auto& count : worked_) count.store(0, std::memory_order_relaxed);
  executor_->run(items, [&](const WorkItem& item) {
    const FloatEnvironment ours;
    worked_[item.worker].fetch_add(1, std::memory_order_relaxed);
    body(item);
  });
  std::int32_t workers = 0;
  for (const auto& count : worked_) workers += count.load(std::memory_order_relaxed) > 0 ? 1 : 0;
  return workers;
}

std::int64_t Host::scratch_bytes() const {
  std::int64_t bytes = messages_.bytes();
  for (const GroupScratch& scratch : scratch_) bytes += scratch.bytes();
  for (const HotBucket& hot : hot_) bytes += hot.bytes();
  return bytes;
}

HostTeam::HostTeam(std::vector<std::unique_ptr<Host>> hosts) : hosts_(std::move(hosts)) {
  errors_.resize(hosts_.size());
  try {
    for (std::int32_t i = 1; i < size(); ++i) threads_->emplace_back([this, i] { work(i); });
  } catch (const std::system_error& error) {
    end_threads();
    throw IoError("hosts: starting thread " + std::to_string(threads_->size() + 1) + " of " +
                  std::to_string(size() - 1) + " failed: " + error.code().message());
  }
}

HostTeam::~HostTeam() { end_threads(); }

void HostTeam::end_threads() noexcept {
  if (home_.left()) {  // the threads did not come along: neither to be joined nor to be detached
    [[maybe_unused]] auto* const kept = threads_.release();
    return;
  }
  closing_ = true;
  round_.fetch_add(1);
  round_.notify_all();
  for (std::thread& thread : *threads_) thread.join();
}

void HostTeam::run(FunctionRef<void(Host&)> body) {
  body_ = &body;
  running_ = size();
  round_.fetch_add(1);
  round_.notify_all();
  run_one(0);
  for (std::int32_t left; (left = running_.load()) != 0;) running_.wait(left);
  for (std::exception_ptr& error : errors_) {
    if (error) {
      const std::exception_ptr first = error;
      for (std::exception_ptr& each : errors_) each = nullptr;
      std::rethrow_exception(first);
    }
  }
}

void HostTeam::work(std::int32_t index) {
  for (std::uint64_t seen = 0;;) {
    round_.wait(seen);
    seen = round_.load();
    if (closing_) return;
    run_one(index);
  }
}

void HostTeam::run_one(std::int32_t index) {
  const FloatEnvironment ours;
  try {
    (*body_)(host(index));
  } catch (const std::exception& error) {
    errors_[index] = std::current_exception();
    host(index).abort(error.what());
  } catch (...) {
    errors_[index] = std::current_exception();
    host(index).abort("unknown error");
  }
  if (running_.fetch_sub(1) == 1) running_.notify_all();
}

}  // namespace embertable::engine
