#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "base/float_environment.h"
#include "base/fork_guard.h"
#include "embertable/errors.h"
#include "embertable/executor.h"

namespace embertable {
namespace {

constexpr std::int32_t kMostThreads = 1024;
constexpr std::size_t kLineBytes = 64;

/// Time that a thread spins before it sleeps: about the cost of sleeping and waking on a virtual
/// machine, whose processors the host wakes. It is shorter where another thread may need the
/// processor.
constexpr auto kSpin = std::chrono::microseconds(50), kShortSpin = std::chrono::microseconds(10);
constexpr int kPausesPerLook = 16;

void pause() { __builtin_ia32_pause(); }

/// Waits until `word` differs from `old`: spins for a while, then sleeps until notified.
void await_change(const std::atomic<std::uint32_t>& word, std::uint32_t old,
                  std::chrono::microseconds spin) {
  const auto deadline = std::chrono::steady_clock::now() + spin;
  do {
    for (int i = 0; i < kPausesPerLook; ++i) {
      if (word.load(std::memory_order_acquire) != old) return;
      pause();
    }
  } while (std::chrono::steady_clock::now() < deadline);
  word.wait(old, std::memory_order_acquire);
}

using Body = FunctionRef<void(const WorkItem&)>;

void run_alone(std::int64_t items, const Body& body) noexcept {
  const FloatEnvironment ours;
  for (std::int64_t i = 0; i < items; ++i) {
    body({.index = i, .next = i + 1 < items ? i + 1 : -1, .worker = 0});
  }
}

class InlineExecutor final : public Executor {
 public:
  std::int32_t workers() const noexcept override { return 1; }
  void run(std::int64_t items, Body body) override { run_alone(items, body); }
};

/// A region is open from the call of `run` until its caller finds no item left; then the caller
/// waits for the threads that joined. A thread that wakes too late joins nothing, so no region
/// waits for a thread to be scheduled.
class ThreadPool final : public Executor {
 public:
  explicit ThreadPool(std::int32_t threads) : workers_(threads) {
    threads_->reserve(threads - 1);
    try {
      for (std::int32_t worker = 1; worker < threads; ++worker) {
        threads_->emplace_back([this, worker] { serve(worker); });
      }
    } catch (const std::system_error& error) {
      stop();
      throw IoError("thread pool: starting thread " + std::to_string(threads_->size() + 1) +
                    " of " + std::to_string(threads - 1) + " failed: " + error.code().message());
    } catch (...) {
      stop();
      throw;
    }
  }

  ~ThreadPool() override { stop(); }

  std::int32_t workers() const noexcept override { return workers_; }

  void run(std::int64_t items, Body body) override {
    home_.require_same_process("executor: run");
    if (items <= 1 || workers_ == 1 || busy_.exchange(true, std::memory_order_acquire)) {
      return run_alone(items, body);
    }
    open(items, body);
    {
      const FloatEnvironment ours;
      work(0);
    }
    close();
    busy_.store(false, std::memory_order_release);
  }

 private:
  static constexpr std::uint32_t kOpen = 1u << 31;  ///< in members_: more may join

  void open(std::int64_t items, const Body& body) noexcept {
    body_ = &body;
    items_ = items;
    next_.store(0, std::memory_order_relaxed);
    members_.fetch_or(kOpen, std::memory_order_release);
    epoch_.fetch_add(1, std::memory_order_release);
    if (items >= workers_) return epoch_.notify_all();
    for (std::int64_t helper = 1; helper < items; ++helper) epoch_.notify_one();
  }

  void close() noexcept {
    std::uint32_t members = members_.fetch_and(~kOpen, std::memory_order_acq_rel) & ~kOpen;
    while (members != 0) {
      await_change(members_, members, spin_);
      members = members_.load(std::memory_order_acquire);
    }
  }

  bool join() noexcept {
    std::uint32_t members = members_.load(std::memory_order_relaxed);
    while ((members & kOpen) != 0) {
      if (members_.compare_exchange_weak(members, members + 1, std::memory_order_acquire,
                                         std::memory_order_relaxed)) {
        return true;
      }
    }
    return false;
  }

  void leave() noexcept {
    const std::uint32_t members = members_.fetch_sub(1, std::memory_order_acq_rel);
    if (members == 1) members_.notify_one();
  }

  std::int64_t claim() noexcept { return next_.fetch_add(1, std::memory_order_relaxed); }

  /// Claims one item ahead of the one it runs, except for the last ones, which go to any free
  /// thread.
  void work(std::int32_t worker) noexcept {
    const std::int64_t items = items_;
    const std::int64_t claim_ahead_below = items - 3 * std::int64_t{workers_};
    std::int64_t index = claim();
    while (index < items) {
      const bool ahead = index < claim_ahead_below;
      const std::int64_t next = ahead ? claim() : items;
      (*body_)({.index = index, .next = next < items ? next : -1, .worker = worker});
      index = ahead ? next : claim();
    }
  }

  void serve(std::int32_t worker) noexcept {
    const FloatEnvironment ours;
    std::uint32_t seen = 0;
    for (;;) {
      await_change(epoch_, seen, spin_);
      seen = epoch_.load(std::memory_order_acquire);
      if (stopping_.load(std::memory_order_relaxed)) return;
      if (!join()) continue;
      work(worker);
      leave();
    }
  }

  void stop() noexcept {
    if (home_
            .forked()) {  // the threads did not come along: neither to be joined nor to be detached
      [[maybe_unused]] auto* const kept = threads_.release();
      return;
    }
    stopping_.store(true, std::memory_order_relaxed);
    epoch_.fetch_add(1, std::memory_order_release);
    epoch_.notify_all();
    for (std::thread& thread : *threads_) thread.join();
  }

  const std::int32_t workers_;
  const std::chrono::microseconds spin_ =
      static_cast<unsigned>(workers_) <= std::thread::hardware_concurrency() ? kSpin : kShortSpin;
  const ForkGuard home_;
  std::atomic<bool> stopping_ = false;
  std::atomic<bool> busy_ = false;
  const Body* body_ = nullptr;  ///< body of the open region; so is the next field
  std::int64_t items_ = 0;
  alignas(kLineBytes) std::atomic<std::int64_t> next_ = 0;      ///< first item that nobody claimed
  alignas(kLineBytes) std::atomic<std::uint32_t> members_ = 0;  ///< threads in a region, and kOpen
  alignas(kLineBytes) std::atomic<std::uint32_t> epoch_ = 0;    ///< changes with every region
  std::unique_ptr<std::vector<std::thread>> threads_ = std::make_unique<std::vector<std::thread>>();
};

}  // namespace

std::shared_ptr<Executor> make_thread_pool(std::int32_t threads) {
  if (threads < 1 || threads > kMostThreads) {
    throw ValueError("thread pool: threads must be 1.." + std::to_string(kMostThreads) + ", got " +
                     std::to_string(threads));
  }
  return std::make_shared<ThreadPool>(threads);
}

std::shared_ptr<Executor> make_inline_executor() { return std::make_shared<InlineExecutor>(); }

}  // namespace embertable
