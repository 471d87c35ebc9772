#include "python/src/engine.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>

#include "python/src/arguments.h"
#include "python/src/arrays.h"

namespace embertable::python {
namespace {

/// Counts the forks that led to this process.
std::atomic<std::uint32_t> forks = 0;

std::uint32_t forks_so_far() {
  [[maybe_unused]] static const int counted =
      pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1, std::memory_order_relaxed); });
  return forks.load(std::memory_order_relaxed);
}

/// The engines inside whose calls this thread is.
thread_local std::vector<const Engine*> inside_of;

}  // namespace

Engine::Inside::Inside(const Engine& engine) {
  if (engine.forks_ != forks_so_far()) {
    throw StateError("the embedding was made in another process than " + std::to_string(getpid()) +
                     ", which is a fork of it");
  }
  if (std::find(inside_of.begin(), inside_of.end(), &engine) != inside_of.end())
    throw StateError("the embedding is called by a function that it calls itself");
  inside_of.push_back(&engine);
}

Engine::Inside::~Inside() { inside_of.pop_back(); }

Engine::Engine(Configuration configuration, Rates& rates, nb::object optimizer, nb::object strategy,
               EmbeddingOptions options, CallbackPtr log, nb::object outputs)
    : configuration_(std::move(configuration)),
      optimizer_(std::move(optimizer)),
      strategy_(std::move(strategy)),
      outputs_(std::move(outputs)),
      convert_(converter_of(outputs_)),
      log_(std::move(log)),
      forks_(forks_so_far()) {
  if (log_) {
    options.log = [callback = log_](std::string_view text) {
      const WithGil gil;
      (*callback)(readable(text));
    };
  }
  embedding_ =
      std::make_unique<Embedding>(configuration_.features(), optimizer_of(optimizer_, rates),
                                  strategy_of(strategy_), std::move(options));
}

Engine::~Engine() {
  if (forks_ != forks_so_far()) {
    embedding_.release();  // NOLINT: leaked
    return;
  }
  const WithoutGil nogil;
  embedding_.reset();
}

}  // namespace embertable::python
