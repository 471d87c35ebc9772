#include "embertable/errors.h"
#include "embertable/tensorflow/tpu_embedding_configuration.h"
#include "tensorflow/wire/read.h"
#include "tensorflow/wire/text.h"
#include "tensorflow/wire/write.h"

namespace embertable::wire {
namespace {

constexpr std::string_view kConfiguration = "TPUEmbeddingConfiguration";
constexpr std::string_view kParameters = "OptimizationParameters";
constexpr std::string_view kStateVariable = "StateVariableSpecification";
constexpr std::string_view kError = "TPUEmbeddingError";
constexpr std::string_view kLayouts = "SparseCoreTableLayouts";

}  // namespace

std::string serialize(const TPUEmbeddingConfiguration& m) { return write(m, kConfiguration); }
std::string serialize(const OptimizationParameters& m) { return write(m, kParameters); }
std::string serialize(const StateVariableSpecification& m) { return write(m, kStateVariable); }
std::string serialize(const TPUEmbeddingError& m) { return write(m, kError); }
std::string serialize(const SparseCoreTableLayouts& m) { return write(m, kLayouts); }

TPUEmbeddingConfiguration parse_configuration(std::string_view bytes) {
  return read<TPUEmbeddingConfiguration>(bytes, kConfiguration);
}
OptimizationParameters parse_optimization_parameters(std::string_view bytes) {
  return read<OptimizationParameters>(bytes, kParameters);
}
StateVariableSpecification parse_state_variable(std::string_view bytes) {
  return read<StateVariableSpecification>(bytes, kStateVariable);
}
TPUEmbeddingError parse_error(std::string_view bytes) {
  return read<TPUEmbeddingError>(bytes, kError);
}
SparseCoreTableLayouts parse_layouts(std::string_view bytes) {
  return read<SparseCoreTableLayouts>(bytes, kLayouts);
}

std::string to_text(const TPUEmbeddingConfiguration& m) { return print(m); }
std::string to_text(const OptimizationParameters& m) { return print(m); }
std::string to_text(const StateVariableSpecification& m) { return print(m); }
std::string to_text(const SparseCoreTableLayouts& m) { return print(m); }

void log_lines(const TPUEmbeddingConfiguration& message,
               const std::function<void(std::string_view)>& log) {
  if (!log) throw ValueError("log_lines: log must be a function, got none");
  const std::string text = to_text(message);
  std::string_view left = text;
  while (!left.empty()) {
    const std::size_t end = left.find('\n');
    log(left.substr(0, end));
    left.remove_prefix(end + 1);
  }
}

}  // namespace embertable::wire
