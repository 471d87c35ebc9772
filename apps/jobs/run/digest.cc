#include "apps/jobs/run/digest.h"

#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "checkpoint/digest.h"
#include "checkpoint/reader.h"

namespace embertable::jobs {
namespace {

void add(std::string_view text, Hasher& hasher) { hasher.update(std::as_bytes(std::span(text))); }

/// Adds the elements; every NaN counts as the same number.
void add(const DenseTensor& tensor, Hasher& hasher) {
  if (tensor.dtype != "F32") return add(tensor.bytes, hasher);
  std::vector<float> numbers(tensor.bytes.size() / sizeof(float));
  std::memcpy(numbers.data(), tensor.bytes.data(), numbers.size() * sizeof(float));
  hasher.update_numbers(numbers);
}

std::string with_parameters(std::string tables, const CallerState& state) {
  Hasher hasher;
  bool any = false;
  add(tables, hasher);
  for (const auto& [name, tensor] : state.tensors) {
    if (!name.starts_with("model.")) continue;
    any = true;
    add(name, hasher);
    add(tensor, hasher);
  }
  return any ? hasher.hex() : tables;
}

}  // namespace

std::string run_digest(const Embedding& engine, const Model& model) {
  CallerState state;
  model.save(engine, state);
  return with_parameters(engine.digest(), state);
}

std::string saved_digest(const std::filesystem::path& path) {
  const checkpoint::Reader reader(checkpoint::local_files(), path);
  return with_parameters(checkpoint::digest(reader), reader.caller_state());
}

}  // namespace embertable::jobs
