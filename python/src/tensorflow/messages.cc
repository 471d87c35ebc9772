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
  return to_bytes(self.ask([](const Embedding& e) { return wire::serialize(e.configuration()); }));
}

}  // namespace

void bind_messages(nb::module_& module) {
  module.def("configuration_text", configuration_text, nb::arg("configuration"),
             R"(Gives the text form of a serialized TPUEmbeddingConfiguration.

configuration: bytes. Raises ValueError for bytes that are none.

>>> embertable.configuration_text(b"")
'')");
  module.def(
      "complete_configuration", completed, nb::arg("configuration"),
      R"(Gives the configuration with what follows from the rest: a descriptor for each feature, or batch size and
num_features of the descriptors.

configuration: bytes. Raises ValueError for bytes that are none, and for one that contradicts itself.

>>> table = embertable.TableConfig(8, 4, name="films")
>>> embedding = embertable.Embedding(embertable.FeatureConfig(table), embertable.SGD(0.1), embertable.EngineStrategy(threads=1))
>>> embedding.build(per_replica_batch_size=2)
>>> text = embertable.configuration_text(embertable.complete_configuration(embedding.configuration()))
>>> "num_features: 1" in text
True)");
}

void bind_messages_of(nb::class_<Engine>& type) {
  type.def(
      "configuration", configuration_of,
      R"(Gives the serialized TPUEmbeddingConfiguration of a built, accelerated engine, as TensorFlow writes it.
Raises RuntimeError for another engine, NotImplementedError for a rule that has no message.

>>> table = embertable.TableConfig(8, 4, name="films")
>>> embedding = embertable.Embedding(embertable.FeatureConfig(table), embertable.SGD(0.1), embertable.EngineStrategy(threads=1))
>>> embedding.build(per_replica_batch_size=2)
>>> 'name: "films"' in embertable.configuration_text(embedding.configuration())
True)");
}

}  // namespace embertable::python
