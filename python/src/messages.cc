// Binds serialized configurations in TensorFlow's protos.
#include <string_view>

#include "embertable/embedding.h"
#include "embertable/tensorflow/tpu_embedding_configuration.h"
#include "python/src/bindings.h"
#include "python/src/engine.h"
#include "python/src/text_caster.h"

namespace embertable::python {
namespace {

std::string_view view(const nb::bytes& bytes) { return {bytes.c_str(), bytes.size()}; }

nb::bytes to_bytes(const std::string& text) { return nb::bytes(text.data(), text.size()); }

std::string configuration_text(const nb::bytes& configuration) {
  return wire::to_text(wire::parse_configuration(view(configuration)));
}

nb::bytes completed(const nb::bytes& configuration) {
  return to_bytes(wire::serialize(wire::complete(wire::parse_configuration(view(configuration)))));
}

nb::bytes configuration_of(Engine& self) {
  return to_bytes(self.run([](const Embedding& e) { return wire::serialize(e.configuration()); }));
}

}  // namespace

void bind_messages(nb::module_& module) {
  module.def("configuration_text", configuration_text, nb::arg("configuration"),
             "The text form of a serialized TPUEmbeddingConfiguration.");
  module.def("complete_configuration", completed, nb::arg("configuration"),
             "The same with what follows from the rest: a descriptor for each table, or batch size "
             "and num_features\nof the descriptors.");
}

void bind_messages_of(nb::class_<Engine>& type) {
  type.def("configuration", configuration_of,
           "The serialized TPUEmbeddingConfiguration of a built, accelerated engine, as TensorFlow "
           "writes it.");
}

}  // namespace embertable::python
