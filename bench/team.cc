#include "bench/team.h"

#include <pthread.h>
#include <sched.h>

namespace embertable::bench {
namespace {

constexpr int kSpins = 3000;

void relax() { __builtin_ia32_pause(); }

std::vector<int> allowed_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cpus;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  }
  return cpus;
}

void stay_on(int cpu) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(static_cast<std::size_t>(cpu), &one);
  pthread_setaffinity_np(pthread_self(), sizeof one, &one);
}

}  // namespace

Team::Team(int size) : size_(size), cpus_(allowed_cpus()) {
  if (static_cast<int>(cpus_.size()) < size) cpus_.clear();
  for (int worker = 1; worker < size; ++worker) {
    threads_.emplace_back([this, worker] { work(worker); });
  }
}

Team::~Team() {
  closing_ = true;
  job_.fetch_add(1);
  job_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Team::run(FunctionRef<void(int)> body) {
  if (size_ == 1) {
    body(0);
    return;
  }
  body_ = &body;
  running_.store(size_ - 1, std::memory_order_relaxed);
  resting_.store(false, std::memory_order_relaxed);
  job_.fetch_add(1, std::memory_order_acq_rel);
  job_.notify_all();
  body(0);
  while (running_.load(std::memory_order_acquire) != 0) relax();
}

Team::CallerOnCpu::CallerOnCpu(const Team& team) : moved_(!team.cpus_.empty()) {
  if (!moved_) return;
  CPU_ZERO(&before_);
  pthread_getaffinity_np(pthread_self(), sizeof before_, &before_);
  stay_on(team.cpus_.front());
}

Team::CallerOnCpu::~CallerOnCpu() {
  if (moved_) pthread_setaffinity_np(pthread_self(), sizeof before_, &before_);
}

void Team::rest() noexcept { resting_.store(true, std::memory_order_relaxed); }

void Team::work(int worker) {
  if (!cpus_.empty()) stay_on(cpus_[worker]);
  std::uint64_t seen = 0;
  for (;;) {
    int spins = 0;
    std::uint64_t job = 0;
    while ((job = job_.load(std::memory_order_acquire)) == seen) {
      if (++spins > kSpins || resting_.load(std::memory_order_relaxed)) job_.wait(seen);
      relax();
    }
    seen = job;
    if (closing_) return;
    (*body_)(worker);
    running_.fetch_sub(1, std::memory_order_acq_rel);
  }
}

}  // namespace embertable::bench
