// Binds steps that are recorded before they run.
#include "embertable/tensorflow/step_descriptor.h"

#include <nanobind/stl/optional.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "python/src/arguments.h"
#include "python/src/bindings.h"
#include "python/src/callback.h"
#include "python/src/classes/collected.h"
#include "python/src/text_caster.h"

namespace embertable::python {
namespace {

using Tag = std::optional<std::string>;

/// A recorded call: the name of the method, and the caller's functions.
struct RecordedCall {
  const char* method;
  std::string tag;
  bool training;
  nb::object function, weights;
};

/// A StepDescriptor that makes the calls of Python's objects. The one of C++ knows their order.
struct PythonSteps {
  StepDescriptor order;
  std::vector<RecordedCall> calls;

  template <class Visit>
  void references(Visit visit) {
    for (RecordedCall& call : calls) {
      visit(call.function);
      visit(call.weights);
    }
  }
};

nb::object callable(nb::handle function, const char* what) {
  return make_callback(function, what)->function();
}

void record_enqueue(PythonSteps& self, nb::handle features, const Tag& tag, bool training,
                    nb::handle weights) {
  RecordedCall call{"enqueue", tag.value_or(""), training, callable(features, "features"),
                    weights.is_none() ? nb::none() : callable(weights, "weights")};
  self.order.enqueue([] { return std::span<const Batch>(); }, call.tag, training);
  self.calls.push_back(std::move(call));
}

void record_dequeue(PythonSteps& self, nb::handle receive, const Tag& tag) {
  RecordedCall call{"dequeue", tag.value_or(""), false, callable(receive, "receive"), nb::none()};
  self.order.dequeue([](const Activations&) {}, call.tag);
  self.calls.push_back(std::move(call));
}

void record_apply_gradients(PythonSteps& self, nb::handle gradients, const Tag& tag) {
  RecordedCall call{"apply_gradients", tag.value_or(""), false, callable(gradients, "gradients"),
                    nb::none()};
  self.order.apply_gradients([] { return std::span<const Nested<Gradient>>(); }, call.tag);
  self.calls.push_back(std::move(call));
}

void make(const RecordedCall& call, const StepDescriptor& order, nb::handle engine) {
  const nb::object method = engine.attr(call.method);
  if (call.method == std::string_view("dequeue")) {
    call.function(method());
  } else if (call.method == std::string_view("apply_gradients")) {
    method(call.function());
  } else {
    const bool training = call.tag.empty() ? call.training : order.trains(call.tag);
    const nb::object weights = call.weights.is_none() ? nb::none() : nb::object(call.weights());
    method(call.function(), weights, nb::arg("training") = training,
           nb::arg("name") = call.tag.empty() ? nb::none() : nb::object(nb::cast(call.tag)));
  }
}

void run_steps(const PythonSteps& self, nb::handle engine) {
  self.order.check();
  const std::vector<RecordedCall> calls = self.calls;  // a function may record more
  for (const RecordedCall& call : calls) make(call, self.order, engine);
}

}  // namespace

void bind_step_descriptor(nb::module_& module) {
  nb::class_<PythonSteps>(
      module, "StepDescriptor", nb::type_slots(Collected<PythonSteps>::slots),
      R"(One step of a program, recorded before it runs, and run any number of times: the calls that it makes of
an engine, their order and their tags. A tag holds the calls of one batch together: one enqueue, one
dequeue, and one apply_gradients or none, which says whether the batch is one of training. Calls are
made in the order in which they were recorded.

>>> table = embertable.TableConfig(3, 1, embertable.Initializer.zeros(), name='t')
>>> engine = embertable.Embedding(embertable.FeatureConfig(table), embertable.SGD(0.5), embertable.EngineStrategy(threads=1))
>>> step, seen = embertable.StepDescriptor(), []
>>> step.enqueue(lambda: np.array([2]), tag='a')
>>> step.dequeue(seen.append, tag='a')
>>> step.apply_gradients(lambda: seen[-1] - 1, tag='a')
>>> step.trains('a'), step.run(engine), step.run(engine), engine.step
(True, None, None, 2))")
      .def(nb::init<>())
      .def("enqueue", record_enqueue, nb::arg("features"), nb::arg("tag") = nb::none(),
           nb::arg("training") = true, nb::arg("weights") = nb::none(),
           R"(Records an enqueue of what features() and weights() return in each run.

tag: a text that the other calls of the batch have too. training: ignored with a tag, whose batch is one
of training if gradients are recorded under it. Raises TypeError for what is no function.

>>> step, seen = embertable.StepDescriptor(), []
>>> step.enqueue(lambda: np.array([2]), tag='a')
>>> step.trains('a')
False)")
      .def(
          "dequeue", record_dequeue, nb::arg("receive"), nb::arg("tag") = nb::none(),
          R"(Records a dequeue, whose activations receive(activations) gets in each run. tag: as of enqueue.
Raises TypeError for what is no function.

>>> step, seen = embertable.StepDescriptor(), []
>>> step.enqueue(lambda: np.array([2]), tag='a')
>>> step.dequeue(seen.append, tag='a')
>>> step.check())")
      .def(
          "apply_gradients", record_apply_gradients, nb::arg("gradients"),
          nb::arg("tag") = nb::none(),
          R"(Records an apply_gradients of what gradients() returns in each run. tag: as of enqueue. Raises
TypeError for what is no function.

>>> step, seen = embertable.StepDescriptor(), []
>>> step.enqueue(lambda: np.array([2]), tag='a')
>>> step.dequeue(seen.append, tag='a')
>>> step.apply_gradients(lambda: seen[-1] - 1, tag='a')
>>> step.trains('a')
True)")
      .def(
          "check", [](const PythonSteps& self) { self.order.check(); },
          R"(Raises RuntimeError naming the tag unless under each tag one batch is enqueued, then dequeued, then
possibly given gradients, once each and in one order of batches.

>>> step = embertable.StepDescriptor()
>>> step.dequeue(print, tag='a')
>>> try:
...     step.check()
... except RuntimeError:
...     print("nothing is enqueued")
nothing is enqueued)")
      .def(
          "trains",
          [](const PythonSteps& self, const std::string& tag) { return self.order.trains(tag); },
          nb::arg("tag"),
          R"(Tells whether the batch of a tag is one of training; False for an unknown tag.

>>> step, seen = embertable.StepDescriptor(), []
>>> step.enqueue(lambda: np.array([2]), tag='a')
>>> step.dequeue(seen.append, tag='a')
>>> step.trains('a'), step.trains('b')
(False, False))")
      .def(
          "run", run_steps, nb::arg("engine"),
          R"(Checks, then makes the calls of an engine: an Embedding, or a Replica on its own thread. What a call
raises ends the run; the calls before it have been made. Raises what check raises, too.

>>> table = embertable.TableConfig(3, 1, embertable.Initializer.row_id(), name='t')
>>> engine = embertable.Embedding(embertable.FeatureConfig(table), embertable.SGD(0.5), embertable.EngineStrategy(threads=1))
>>> step, seen = embertable.StepDescriptor(), []
>>> step.enqueue(lambda: np.array([2]), tag='a')
>>> step.dequeue(seen.append, tag='a')
>>> step.run(engine)
>>> seen[0].tolist()
[[2.0]])");
}

}  // namespace embertable::python
