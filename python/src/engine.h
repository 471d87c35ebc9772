#pragma once

#include <nanobind/nanobind.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/interruption.h"
#include "embertable/embedding.h"
#include "python/src/callback.h"
#include "python/src/calls.h"
#include "python/src/configuration.h"
#include "python/src/dlpack/exchange_api.h"
#include "python/src/gil.h"
#include "python/src/tracing.h"

namespace embertable::python {

/// An `Embedding`, and what Python adds to it: the caller's configuration, in whose containers
/// results are packed, and a check of the process.
class Engine {
 public:
  Engine(Configuration configuration, Rates& rates, nb::object optimizer, nb::object strategy,
         EmbeddingOptions options, CallbackPtr log, CallbackPtr log_configuration,
         nb::object outputs);

  /// In a forked process there are no threads, and nothing is freed.
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// Calls work(embedding) without the GIL. Any number of threads may: the engine orders them.
  /// Throws StateError in a fork, if the engine's own callback calls, and if a framework records
  /// the call.
  template <class Work>
  auto run(Work work) {
    refuse_recording("the embedding");
    return ask(work);
  }

  /// Does the same for questions that concern no rows, which recorded code may ask.
  template <class Work>
  auto ask(Work work) {
    process_.require_here("the embedding");
    const Inside inside(this);
    const WithoutGil nogil;
    const Interruption interruption(raise_signals);
    return work(*embedding_);
  }

  /// Gives access for calls that are allowed at any time.
  const Embedding& embedding() const noexcept { return *embedding_; }
  Embedding& embedding() noexcept { return *embedding_; }

  const Configuration& configuration() const noexcept { return configuration_; }
  const nb::object& strategy() const noexcept { return strategy_; }

  /// Makes an array of the kind that the caller has chosen of NumPy's; None if it is NumPy's.
  const nb::object& convert() const noexcept { return convert_; }
  const nb::object& outputs() const noexcept { return outputs_; }

  /// Makes an array of that kind at once; null where NumPy's are made first.
  const dlpack::ExchangeApi* exchange_api() const noexcept { return api_; }

  template <class Visit>
  void references(Visit visit) {
    configuration_.references(visit);
    visit(optimizer_);
    visit(strategy_);
    visit(outputs_);
    visit(convert_);
    functions(visit);
  }
  template <class Visit>
  void functions(Visit visit) {
    for (const CallbackPtr& log : {log_, log_configuration_})
      if (log) visit(log->function());
  }

 private:
  Configuration configuration_;
  nb::object optimizer_;
  nb::object strategy_;
  nb::object outputs_;  ///< the name of the kind of arrays
  nb::object convert_;  ///< makes one of NumPy's array; None where results stay NumPy's
  const dlpack::ExchangeApi* api_;
  CallbackPtr log_, log_configuration_;
  Process process_;
  std::unique_ptr<Embedding> embedding_;
};

/// Returns what passes each text on to a Python function; nothing for null.
std::function<void(std::string_view)> log_to(const CallbackPtr& callback);

/// Converts "output_shapes" or "batch_size". Throws ValueError.
ApiRevision revision_of(const std::string& name);

/// Converts seconds for which a call waits at the queues for another thread. Throws ValueError,
/// TypeError.
std::chrono::milliseconds wait_of(nb::handle value);

// Methods of the class that steps.cc, saving.cc and reports.cc add.
void bind_steps_of(nb::class_<Engine>& type);
void bind_saving_of(nb::class_<Engine>& type);
void bind_reports_of(nb::class_<Engine>& type);
void bind_messages_of(nb::class_<Engine>& type);

}  // namespace embertable::python
