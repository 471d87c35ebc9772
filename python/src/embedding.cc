// Binds the embedding engine.
#include "embertable/embedding.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <algorithm>

#include "embertable/variables/sharded_variable.h"
#include "python/src/arguments.h"
#include "python/src/arrays.h"
#include "python/src/bindings.h"
#include "python/src/classes/collected.h"
#include "python/src/engine.h"
#include "python/src/row_access.h"
#include "python/src/text_caster.h"
#include "python/src/trees.h"

namespace embertable::python {
namespace {

using Name = std::optional<std::string>;

/// Returns how many hosts own a block of a table's rows; rows by modulo are in no blocks.
std::int32_t hosts_with_blocks(const StrategyPtr& strategy) {
  return strategy && strategy->options().sharding == Sharding::kDiv ? strategy->options().hosts : 1;
}

void construct_engine(Engine* self, nb::object feature_config, nb::object optimizer,
                      nb::object strategy, bool pipeline_execution_with_tensor_core,
                      const std::string& out_of_range, bool variable_batch,
                      bool merge_partial_shapes, nb::handle seed, nb::handle queue_capacity,
                      nb::object log, const std::string& gradient_policy,
                      const std::string& revision, const nb::object& log_configuration,
                      nb::object outputs) {
  EmbeddingOptions options;
  options.pipeline_execution_with_tensor_core = pipeline_execution_with_tensor_core;
  if (out_of_range != "error" && out_of_range != "drop")
    throw ValueError("out_of_range must be 'error' or 'drop', got '" + out_of_range + "'");
  options.out_of_range = out_of_range == "error" ? OutOfRange::kError : OutOfRange::kDrop;
  if (gradient_policy != "allow" && gradient_policy != "error")
    throw ValueError("gradient_policy must be 'allow' or 'error', got '" + gradient_policy + "'");
  options.gradient_policy =
      gradient_policy == "allow" ? GradientPolicy::kAllow : GradientPolicy::kError;
  options.revision = revision_of(revision);
  options.variable_batch = variable_batch;
  options.merge_partial_shapes = merge_partial_shapes;
  options.seed = seed_of(seed);
  options.queue_capacity = integer32(queue_capacity, "queue_capacity");
  if (log.is_none())
    log = nb::module_::import_("logging").attr("getLogger")("embertable").attr("warning");
  Rates rates;
  Configuration configuration(feature_config, rates, hosts_with_blocks(strategy_of(strategy)));
  new (self) Engine(
      std::move(configuration), rates, std::move(optimizer), std::move(strategy),
      std::move(options), make_callback(log, "log"),
      log_configuration.is_none() ? nullptr : make_callback(log_configuration, "log_configuration"),
      std::move(outputs));
}

/// True for what may be the shape of one feature: None, dims, or an object of TensorFlow's.
bool is_shape(nb::handle value) {
  if (!PyList_Check(value.ptr()) && !PyTuple_Check(value.ptr())) return is_leaf(value);
  for (const nb::handle dim : value)
    if (!dim.is_none() && PyIndex_Check(dim.ptr()) == 0) return false;
  return true;
}

/// Returns the shape of each feature, of a list in flatten order or of a tree.
std::vector<nb::object> shapes_of(nb::handle shapes, const Structure& features) {
  const bool is_list = PyList_Check(shapes.ptr()) ||
                       (PyTuple_Check(shapes.ptr()) && !nb::hasattr(shapes, "_fields"));
  const auto count = static_cast<std::size_t>(features.num_leaves());
  if (is_list && nb::len(shapes) == count && !is_shape(shapes)) {
    std::vector<nb::object> leaves;
    for (const nb::handle one : shapes)
      if (is_shape(one)) leaves.push_back(nb::borrow(one));
    if (leaves.size() == count) return leaves;
  }
  return leaves_in_places_of(shapes, features, "per_replica_input_shapes");
}

void build(Engine& self, nb::handle shapes, nb::handle batch_size) {
  if (self.embedding().built()) return;  // whatever the arguments are
  const bool one_number = PyIndex_Check(shapes.ptr()) && !nb::hasattr(shapes, "__len__");
  const nb::handle size = one_number ? shapes : batch_size;
  const std::int64_t batch = size.is_none() ? 0 : integer(size, "per_replica_batch_size");
  if (shapes.is_none() || one_number || !self.embedding().accelerated()) {
    self.run([&](Embedding& embedding) { embedding.build(batch); });
    return;
  }
  std::vector<Shape> leaves;
  for (const nb::object& leaf : shapes_of(shapes, self.configuration().structure()))
    leaves.push_back(shape(leaf, "per_replica_input_shapes"));
  const Nested<Shape> tree(self.configuration().structure(), std::move(leaves));
  self.run([&](Embedding& embedding) { embedding.build(tree, batch); });
}

nb::dict embedding_tables(nb::handle self) {
  auto& engine = nb::cast<Engine&>(self);
  const auto views = engine.run([](Embedding& embedding) { return embedding.embedding_tables(); });
  nb::dict arrays;
  for (const auto& [table, view] : views) {
    arrays[engine.configuration().object_of(table)] = numpy_rows(view, self, true);
  }
  return arrays;
}

/// Returns what asks the engine to work.
auto asking(Engine& engine) {
  return [&engine](auto work) { return engine.run(work); };
}

nb::object read_rows(Engine& self, const std::string& variable, nb::handle ids) {
  return rows_read(asking(self), variable, ids);
}

void assign_rows(Engine& self, const std::string& variable, nb::handle ids, nb::handle values) {
  assign_rows_to(asking(self), variable, ids, values);
}

/// Returns ids and sums of a table whose rule is "none".
nb::tuple gradient_sums(Engine& self, const std::string& table) {
  const GradientSumsOfTable sums =
      self.run([&](const Embedding& embedding) { return embedding.gradient_sums(table); });
  const auto ids = static_cast<std::int64_t>(sums.ids.size());
  std::int64_t dim = 0;
  for (const TableInfo& info : self.embedding().tables())
    if (info.name == table) dim = info.dim;
  const nb::object id_array = new_integers(Shape{ids}), sum_array = new_floats(Shape{ids, dim});
  std::copy(sums.sums.begin(), sums.sums.end(),
            WritableArray(sum_array, "gradient_sums: sums").span().begin());
  id_array[nb::slice(nb::none(), nb::none(), nb::none())] = nb::cast(sums.ids);
  return nb::make_tuple(id_array, sum_array);
}

nb::object output_shapes(const Engine& self) {
  std::vector<nb::object> leaves;
  for (const Shape& one : self.embedding().output_shapes().leaves())
    leaves.push_back(to_python(one));
  return self.configuration().pack(leaves);
}

using EngineClass = nb::class_<Engine>;

void bind_construction(EngineClass& type) {
  type.def(
      "__init__", construct_engine, nb::arg("feature_config").none(),
      nb::arg("optimizer") = nb::none(), nb::arg("strategy") = nb::none(), nb::kw_only(),
      nb::arg("pipeline_execution_with_tensor_core") = false, nb::arg("out_of_range") = "error",
      nb::arg("variable_batch") = false, nb::arg("merge_partial_shapes") = false,
      nb::arg("seed") = 0, nb::arg("queue_capacity") = 4, nb::arg("log") = nb::none(),
      nb::arg("gradient_policy") = "error", nb::arg("revision") = "output_shapes",
      nb::arg("log_configuration") = nb::none(), nb::arg("outputs") = "numpy",
      R"(Accelerated with a strategy, else plain: it only holds tables. feature_config: a tree of FeatureConfigs;
optimizer: of all tables that have none of their own. pipeline_execution_with_tensor_core: dequeue looks a
batch up before the update of the one before, whose gradients it does not see. out_of_range: ids outside of
their table raise DataError, 'error', or are left out of the batch, 'drop'. variable_batch: a batch may have
fewer samples than the first one, or than build was told. merge_partial_shapes: dims that output_shape leaves
unknown are taken from the batch. seed: of the first values of rows, >= 0. queue_capacity: how many batches
wait in the queue, >= 1; one more waits, or raises without a timeout. log(text) receives warnings, None:
logging.getLogger('embertable'). gradient_policy 'error': gradients that are infinite or NaN raise
DataError before anything changes; 'allow': they change rows like others. revision: 'output_shapes', or
'batch_size' for the rules of TensorFlow 2.4: build takes a batch size, which all features of all
replicas share, and sparse and ragged ids do not come in one call. log_configuration(text) receives the
configuration() of the engine that is built, line by line. outputs: the kind of arrays that results are,
"numpy", "tensorflow", "torch" or "jax".)");
  type.def("build", build, nb::arg("per_replica_input_shapes") = nb::none(),
           nb::arg("per_replica_batch_size") = nb::none(),
           R"(Creates the tables. A built object returns at once, whatever the arguments.

per_replica_input_shapes: a tree like feature_config, or a list in flatten order, of input shapes with
None for an unknown dim; or one number, the batch size. per_replica_batch_size: used where no shapes are
given; all features then have that many samples. Raises ValueError naming the feature whose shape
contradicts the configuration or stays unknown, and for names and numbers of shapes that are not those of
the features; RuntimeError if another engine is built on the strategy.

>>> table = embertable.TableConfig(8, 4, name="films")
>>> embedding = embertable.Embedding(embertable.FeatureConfig(table), embertable.SGD(0.1), embertable.EngineStrategy(threads=1))
>>> embedding.build(per_replica_batch_size=2)
>>> embedding.output_shapes
(2,))");
  type.def_prop_ro("built", [](const Engine& self) { return self.embedding().built(); });
  type.def_prop_ro("accelerated",
                   [](const Engine& self) { return self.embedding().accelerated(); });
  type.def_prop_ro("feature_config",
                   [](const Engine& self) { return self.configuration().tree(); });
  type.def_prop_ro("strategy", &Engine::strategy);
  type.def_prop_ro("outputs", &Engine::outputs,
                   "The kind of arrays that results are: 'numpy', "
                   "'tensorflow', 'torch' or 'jax'.");
  type.def_prop_ro("output_shapes", output_shapes,
                   "Of one replica without the dim, by feature; None before they are known.");
  type.def_prop_rw(
      "verify_output_shapes_on_enqueue",
      [](const Engine& self) { return self.embedding().verify_output_shapes_on_enqueue(); },
      [](Engine& self, bool verify) {
        self.embedding().set_verify_output_shapes_on_enqueue(verify);
      });
}

void bind_tables(EngineClass& type) {
  type.def(
      "embedding_tables", embedding_tables,
      R"(Gives, by TableConfig, an array [vocabulary_size, dim] over each table's own memory, to read and write.
Builds. Its dtype is the table's row_type; bfloat16 takes the package ml_dtypes. Raises RuntimeError if the engine has a strategy
(read_rows and sharded_variable read it then), NotImplementedError without the package.

>>> table = embertable.TableConfig(8, 4, name="films")
>>> embedding = embertable.Embedding(embertable.FeatureConfig(table), embertable.Adagrad(0.1))
>>> embedding.embedding_tables()[table].shape
(8, 4))");
  type.def(
      "sharded_variable",
      [](Engine& self, const std::string& variable) {
        return self.run([&](Embedding& e) { return e.sharded_variable(variable); });
      },
      nb::arg("variable"),
      R"(Gives a table or slot as a ShardedVariable over the engine's memory, a component for each host. It is
assignable if the engine is plain, else read-only. Using it is exclusive with steps.

variable: "table" or "table/slot". Raises RuntimeError unless built or restored, KeyError for an unknown
variable, ValueError where several hosts own rows by modulo.

>>> table = embertable.TableConfig(8, 4, name="films")
>>> embedding = embertable.Embedding(embertable.FeatureConfig(table), embertable.Adagrad(0.1))
>>> embedding.build()
>>> embedding.sharded_variable("films/accumulators").shape
(8, 4))");
  type.def("read_rows", read_rows, nb::arg("variable"), nb::arg("ids").none(),
           R"(Gives rows of a variable, of shape ids.shape + [dim]; of a row-wise slot, ids.shape.

variable: "table" or "table/slot"; ids: integers of any shape. Raises RuntimeError unless built or
restored, KeyError for an unknown variable, IndexError for an id outside it.

>>> table = embertable.TableConfig(8, 4, name="films")
>>> embedding = embertable.Embedding(embertable.FeatureConfig(table), embertable.Adagrad(0.1))
>>> embedding.build()
>>> embedding.read_rows("films", [[1, 2], [3, 3]]).shape
(2, 2, 4))");
  type.def(
      "gradient_sums", gradient_sums, nb::arg("table"),
      R"(Gives (ids, sums) of a table whose rule is "none": the ids of the last step, rising, and their summed
gradients [ids, dim].

table: its name. Raises KeyError for an unknown table, ValueError for one with another rule, RuntimeError
unless built.

>>> table = embertable.TableConfig(8, 2, name="films")
>>> embedding = embertable.Embedding(embertable.FeatureConfig(table), embertable.NoUpdate(), embertable.EngineStrategy(threads=1))
>>> embedding.enqueue(np.array([3, 3]))
>>> embedding.apply_gradients(np.ones_like(embedding.dequeue()))
>>> [array.tolist() for array in embedding.gradient_sums("films")]
[[3], [[2.0, 2.0]]])");
  type.def("assign_rows", assign_rows, nb::arg("variable"), nb::arg("ids").none(),
           nb::arg("values").none(), R"(Overwrites rows, the last of repeated ids winning.

variable: "table" or "table/slot"; ids: integers of any shape; values: floats of shape ids.shape + [dim].
Raises what read_rows raises, and ValueError for values of another shape. Nothing is written then.

>>> table = embertable.TableConfig(8, 4, name="films")
>>> embedding = embertable.Embedding(embertable.FeatureConfig(table), embertable.Adagrad(0.1))
>>> embedding.build()
>>> embedding.assign_rows("films", [2], np.zeros((1, 4)))
>>> embedding.read_rows("films", [2]).tolist()
[[0.0, 0.0, 0.0, 0.0]])");
  type.def(
      "assign_step",
      [](Engine& self, nb::handle step) {
        const std::int64_t number = integer(step, "assign_step: step");
        self.run([&](Embedding& embedding) { embedding.assign_step(number); });
      },
      nb::arg("step").none(),
      R"(Sets the number of updates so far, as a restore does: rules and rates that count steps go on from there.

step: the number, 0 to 2**62. Of several processes each calls it. Raises TypeError, ValueError, and RuntimeError unless built.

>>> table = embertable.TableConfig(8, 4, name="films")
>>> embedding = embertable.Embedding(embertable.FeatureConfig(table), embertable.SGD(0.1))
>>> embedding.build()
>>> embedding.assign_step(3)
>>> embedding.step
3)");
  type.def(
      "digest",
      [](Engine& self) { return self.run([](const Embedding& e) { return e.digest(); }); },
      R"(Gives one hash of all tables and slots, 32 hexadecimal digits: equal for any number of threads and hosts.
Raises RuntimeError unless built or restored.

>>> table = embertable.TableConfig(8, 4, name="films")
>>> embedding = embertable.Embedding(embertable.FeatureConfig(table), embertable.Adagrad(0.1))
>>> embedding.build()
>>> len(embedding.digest())
32)");
  type.def_prop_ro(
      "step", [](const Engine& self) { return self.embedding().step(); },
      "Training batches whose gradients have been taken so far.");
}

}  // namespace

void bind_embedding(nb::module_& module) {
  EngineClass type(
      module, "Embedding", nb::type_slots(Collected<Engine>::slots),
      R"(Tables that are looked up and trained by batches of ids. Any number of threads may call; a call that raises leaves the object
as it was. Arrays are read while other threads run: if one writes to them, the call raises, or uses old and new values.

>>> table = embertable.TableConfig(8, 4, name="films")
>>> embedding = embertable.Embedding(embertable.FeatureConfig(table), embertable.SGD(0.1), embertable.EngineStrategy(threads=1))
>>> embedding.enqueue(np.array([1, 2]))
>>> activations = embedding.dequeue()
>>> embedding.apply_gradients(activations))");
  bind_construction(type);
  bind_steps_of(type);
  bind_tables(type);
  bind_saving_of(type);
  bind_reports_of(type);
  bind_messages_of(type);
}

}  // namespace embertable::python
