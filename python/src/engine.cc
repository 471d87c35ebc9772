#include "python/src/engine.h"

#include "python/src/arguments.h"
#include "python/src/arrays.h"

namespace embertable::python {

std::function<void(std::string_view)> log_to(const CallbackPtr& callback) {
  if (!callback) return {};
  return [callback](std::string_view text) { with_gil([&] { (*callback)(readable(text)); }); };
}

ApiRevision revision_of(const std::string& name) {
  if (name == "output_shapes") return ApiRevision::kOutputShapes;
  if (name == "batch_size") return ApiRevision::kBatchSize;
  throw ValueError("revision must be 'output_shapes' or 'batch_size', got '" + name + "'");
}

Engine::Engine(Configuration configuration, Rates& rates, nb::object optimizer, nb::object strategy,
               EmbeddingOptions options, CallbackPtr log, CallbackPtr log_configuration,
               nb::object outputs)
    : configuration_(std::move(configuration)),
      optimizer_(std::move(optimizer)),
      strategy_(std::move(strategy)),
      outputs_(std::move(outputs)),
      convert_(converter_of(outputs_)),
      api_(exchange_api_of(outputs_)),
      log_(std::move(log)),
      log_configuration_(std::move(log_configuration)) {
  options.log = log_to(log_);
  options.log_configuration = log_to(log_configuration_);
  embedding_ =
      std::make_unique<Embedding>(configuration_.features(), optimizer_of(optimizer_, rates),
                                  strategy_of(strategy_), std::move(options));
}

Engine::~Engine() {
  if (!process_.is_here()) {
    embedding_.release();  // NOLINT: leaked
    return;
  }
  const WithoutGil nogil;
  embedding_.reset();
}

}  // namespace embertable::python
