// Binds tables that are looked up and trained directly.
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <mutex>
#include <shared_mutex>
#include <vector>

#include "base/interruption.h"
#include "embertable/direct_embedding.h"
#include "python/src/arguments.h"
#include "python/src/arrays.h"
#include "python/src/batches.h"
#include "python/src/bindings.h"
#include "python/src/callback.h"
#include "python/src/calls.h"
#include "python/src/checkpoint.h"
#include "python/src/classes/collected.h"
#include "python/src/classes/described.h"
#include "python/src/configuration.h"
#include "python/src/engine.h"
#include "python/src/fair_shared_mutex.h"
#include "python/src/gil.h"
#include "python/src/row_access.h"
#include "python/src/row_gradients.h"
#include "python/src/text_caster.h"
#include "python/src/tracing.h"

namespace embertable::python {
namespace {

/// A `DirectEmbedding`, with the caller's configuration. Lookups and other questions run
/// concurrently, changes alone.
class DirectTables {
 public:
  DirectTables(Configuration configuration, Rates& rates, nb::object optimizer, nb::object strategy,
               std::uint64_t seed, CallbackPtr log, const nb::object& outputs)
      : configuration_(std::move(configuration)),
        optimizer_(std::move(optimizer)),
        strategy_(std::move(strategy)),
        convert_(converter_of(outputs)),
        log_(std::move(log)),
        direct_(std::make_unique<DirectEmbedding>(
            configuration_.features(), optimizer_of(optimizer_, rates), strategy_of(strategy_),
            DirectOptions{.seed = seed, .log = log_to(log_)})) {}

  /// In a forked process there are no threads, and nothing is freed.
  ~DirectTables() {
    if (!process_.is_here()) {
      direct_.release();  // NOLINT: leaked
      return;
    }
    const WithoutGil nogil;
    direct_.reset();
  }
  DirectTables(const DirectTables&) = delete;
  DirectTables& operator=(const DirectTables&) = delete;

  /// Call work(tables) without the GIL: `ask` beside other questions, `alone` beside nothing.
  template <class Work>
  auto ask(Work work) {
    return call<std::shared_lock<FairSharedMutex>>(work);
  }
  template <class Work>
  auto alone(Work work) {
    return call<std::unique_lock<FairSharedMutex>>(work);
  }

  /// Gives access for calls that are allowed at any time.
  const DirectEmbedding& direct() const noexcept { return *direct_; }

  const Configuration& configuration() const noexcept { return configuration_; }
  const nb::object& strategy() const noexcept { return strategy_; }
  const nb::object& convert() const noexcept { return convert_; }

  template <class Visit>
  void references(Visit visit) {
    configuration_.references(visit);
    visit(optimizer_);
    visit(strategy_);
    visit(convert_);
    functions(visit);
  }
  template <class Visit>
  void functions(Visit visit) {
    if (log_) visit(log_->function());
  }

 private:
  template <class Lock, class Work>
  auto call(Work work) {
    process_.require_here("the embedding");
    refuse_recording("the embedding");
    const Inside inside(this);
    const WithoutGil nogil;
    const Lock lock(exclusive_);
    const Interruption interruption(raise_signals);
    return work(*direct_);
  }

  Configuration configuration_;
  nb::object optimizer_;
  nb::object strategy_;
  nb::object
      convert_;  ///< makes another kind of one of NumPy's arrays; None where results stay NumPy's
  CallbackPtr log_;
  Process process_;
  FairSharedMutex exclusive_;
  std::unique_ptr<DirectEmbedding> direct_;
};

using Outputs = std::vector<LookupOutput>;

/// What a lookup keeps of its batches for their gradients: an output for each replica.
struct DirectLookup {
  nb::object tables;
  std::shared_ptr<Outputs> outputs;

  template <class Visit>
  void references(Visit visit) {
    visit(tables);
  }
};

/// Returns arrays over the results of a lookup, in the containers of its features.
nb::object arrays_of(nb::handle features, const std::shared_ptr<Outputs>& outputs,
                     const nb::object& convert) {
  const auto trees = by_replica(features);
  const nb::object owner =
      nb::capsule(new std::shared_ptr<Outputs>(outputs),
                  [](void* held) noexcept { delete static_cast<std::shared_ptr<Outputs>*>(held); });
  std::vector<nb::object> packed;
  for (std::size_t r = 0; r < outputs->size(); ++r) {
    const LookupOutput& output = (*outputs)[r];
    const auto leaves = numpy_views(output, owner, convert);
    packed.push_back(pack(trees[trees.size() == 1 ? 0 : r], output.structure(), leaves));
  }
  return per_replica(packed);
}

std::shared_ptr<Outputs> looked_up(DirectTables& self, nb::handle features, nb::handle weights) {
  const Batches read = read_batches(features, weights, self.configuration().structure());
  auto outputs = std::make_shared<Outputs>(self.direct().replicas());
  self.ask([&](DirectEmbedding& direct) { direct.embedding_lookup(read.batches, *outputs); });
  return outputs;
}

nb::object direct_lookup(DirectTables& self, nb::handle features, nb::handle weights) {
  return arrays_of(features, looked_up(self, features, weights), self.convert());
}

nb::tuple look_up_directly(nb::handle self, nb::handle features, nb::handle weights) {
  auto& tables = nb::cast<DirectTables&>(self);
  auto outputs = looked_up(tables, features, weights);
  nb::object activations = arrays_of(features, outputs, tables.convert());
  return nb::make_tuple(activations, nb::cast(DirectLookup{nb::borrow(self), std::move(outputs)}));
}

/// The lookups of one step and the gradients of their activations, with everything that they
/// borrow from.
class Backward {
 public:
  /// Takes one lookup and its gradients, or a list of each. Throws TypeError, ValueError.
  Backward(nb::handle lookups, nb::handle gradients) {
    if (!is_sequence(lookups)) {
      add(lookups, gradients);
      return;
    }
    if (!is_sequence(gradients))
      throw TypeError("gradients of several lookups must be a list with a tree for each, got " +
                      type_text(gradients));
    const std::size_t count = nb::len(lookups);
    if (nb::len(gradients) != count) {
      throw ValueError("gradients of " + std::to_string(count) +
                       " lookups must be a list with a tree for each, got " +
                       std::to_string(nb::len(gradients)));
    }
    for (std::size_t i = 0; i < count; ++i) add(lookups[i], gradients[i]);
  }

  /// Valid during the life of this object.
  std::vector<LookupGradients> parts() const {
    std::vector<LookupGradients> parts;
    for (const Part& part : parts_) parts.push_back({*part.outputs, part.gradients.trees});
    return parts;
  }

 private:
  struct Part {
    std::shared_ptr<Outputs> outputs;
    Gradients gradients;
  };

  static bool is_sequence(nb::handle value) {
    return PyList_Check(value.ptr()) || PyTuple_Check(value.ptr());
  }
  void add(nb::handle lookup, nb::handle gradients) {
    const DirectLookup* given = nullptr;
    if (!nb::try_cast(lookup, given) || !given)
      throw TypeError("a lookup must be a DirectLookup, got " + type_text(lookup));
    parts_.push_back(
        {given->outputs, read_gradients(gradients, given->outputs->front().structure())});
  }

  std::vector<Part> parts_;
};

nb::dict direct_gradients(DirectTables& self, nb::handle lookups, nb::handle gradients) {
  const Backward backward(lookups, gradients);
  const auto parts = backward.parts();
  const auto sums = self.ask([&](DirectEmbedding& direct) { return direct.gradients(parts); });
  return row_gradients(sums, self.configuration());
}

/// One table in an update of the caller's. Its arrays may be kept: rows and gradients are copies,
/// parameters and slots show the tables' memory, which they keep.
struct TableUpdate {
  nb::object table, rows, gradients, parameters, slots;
  std::int64_t step;
};

nb::object rows_of(const TableView& view, bool row_wise, nb::handle owner) {
  if (!row_wise) return numpy_rows(view, owner, true);
  const std::int64_t dims[] = {view.rows}, strides[] = {view.row_stride};
  return numpy_view(view.data, dims, owner, strides);
}

/// True for a slot with one number per row.
bool is_row_wise(const DirectEmbedding& direct, std::string_view table, const std::string& slot) {
  for (const TableInfo& info : direct.tables()) {
    if (info.name != table) continue;
    for (const TableInfo::Slot& one : info.slots)
      if (one.name == slot) return one.row_wise;
  }
  return false;
}

TableUpdate converted(const DirectUpdate& update, const DirectEmbedding& direct, nb::handle self) {
  nb::dict slots;
  for (const auto& [name, view] : update.slots)
    slots[decoded(name)] = rows_of(view, is_row_wise(direct, update.table, name), self);
  const auto rows = static_cast<std::int64_t>(update.rows.size());
  return {decoded(update.table),
          copy_of(update.rows),
          copy_of(update.gradients, Shape{rows, update.parameters.dim}),
          rows_of(update.parameters, false, self),
          slots,
          update.step};
}

void apply_directly(nb::handle self, nb::handle lookups, nb::handle gradients, nb::handle update) {
  auto& tables = nb::cast<DirectTables&>(self);
  const Backward backward(lookups, gradients);
  const auto parts = backward.parts();
  if (update.is_none())
    return tables.alone([&](DirectEmbedding& direct) { direct.apply_gradients(parts); });
  const CallbackPtr callback = make_callback(update, "update");
  tables.alone([&](DirectEmbedding& direct) {
    direct.apply_gradients(parts, [&](const DirectUpdate& of_table) {
      with_gil([&] { (*callback)(nb::cast(converted(of_table, direct, self))); });
    });
  });
}

nb::dict direct_tables(nb::handle self) {
  auto& tables = nb::cast<DirectTables&>(self);
  const auto views = tables.ask([](DirectEmbedding& direct) { return direct.embedding_tables(); });
  nb::dict arrays;
  for (const auto& [table, view] : views)
    arrays[tables.configuration().object_of(table)] = rows_of(view, false, self);
  return arrays;
}

void construct_direct(DirectTables* self, nb::handle feature_config, nb::object optimizer,
                      nb::object strategy, nb::handle seed, const nb::object& log,
                      const nb::object& outputs) {
  const nb::object warn =
      log.is_none()
          ? nb::module_::import_("logging").attr("getLogger")("embertable").attr("warning")
          : log;
  Rates rates;
  Configuration configuration(feature_config, rates);
  new (self) DirectTables(std::move(configuration), rates, std::move(optimizer),
                          std::move(strategy), seed_of(seed), make_callback(warn, "log"), outputs);
}

Optimizer slots_only_of(nb::handle names, nb::handle create, CallbackPtr& creation) {
  std::vector<std::string> slots;
  if (PyUnicode_Check(names.ptr()) || !nb::try_cast(names, slots))
    throw TypeError("slot_names must be a list of names, got " + type_text(names));
  if (create.is_none()) return slots_only(std::move(slots));
  creation = make_callback(create, "slot_variable_creation_fn");
  return slots_only(std::move(slots), slots_from(creation));
}

using DirectClass = nb::class_<DirectTables>;

void bind_direct_construction(DirectClass& type) {
  type.def(
      "__init__", construct_direct, nb::arg("feature_config").none(),
      nb::arg("optimizer") = nb::none(), nb::arg("strategy") = nb::none(), nb::kw_only(),
      nb::arg("seed") = 0, nb::arg("log") = nb::none(), nb::arg("outputs") = "numpy",
      R"(feature_config: a tree of FeatureConfigs. optimizer: that of tables without their own; a table without any has no slots, and only an update of the
caller's steps it. strategy: an EngineStrategy, which says how many replicas look up. seed: mixed into
every initializer. log(text) receives warnings, None: logging.getLogger('embertable'). outputs: the kind
of arrays that activations are, "numpy", "tensorflow", "torch" or "jax".

Raises RuntimeError without a strategy, ValueError for a broken rule of a configuration.)");
  type.def(
      "build", [](DirectTables& self) { self.alone([](DirectEmbedding& d) { d.build(); }); },
      R"(Gives the tables that were not restored their first values; a built object returns at once. All calls
that need tables build.

>>> table = embertable.TableConfig(3, 1, embertable.Initializer.zeros(), name='t')
>>> tables = embertable.DirectEmbedding(embertable.FeatureConfig(table), embertable.SGD(0.5), embertable.EngineStrategy(threads=1))
>>> tables.build()
>>> tables.built
True)");
  type.def_prop_ro("built", [](const DirectTables& self) { return self.direct().built(); });
  type.def_prop_ro("feature_config",
                   [](const DirectTables& self) { return self.configuration().tree(); });
  type.def_prop_ro("strategy", &DirectTables::strategy);
  type.def_prop_ro("replicas", [](const DirectTables& self) { return self.direct().replicas(); });
  type.def_prop_ro(
      "tables", [](const DirectTables& self) { return self.direct().tables(); },
      "A TableInfo for each, in table order: first occurrence in the flattened features.");
  type.def_prop_ro(
      "step", [](const DirectTables& self) { return self.direct().step(); },
      "Steps so far, those before a restore included.");
}

void bind_direct_steps(DirectClass& type) {
  for (const char* name : {"embedding_lookup", "__call__"}) {
    type.def(
        name, direct_lookup, nb::arg("features").none(), nb::arg("weights") = nb::none(),
        R"(Gives activations in the containers of the features, of which a part will do. Batches may have other shapes at
each call. Any number of threads may look up.

features, weights: ids and weights as an Embedding takes them, for several replicas a PerReplica of one
tree each, or one tree that all use.

Raises what serving_embedding_lookup raises. Nothing is pruned: an id below 0 is a DataError.

>>> table = embertable.TableConfig(3, 2, embertable.Initializer.row_id(), name='t')
>>> tables = embertable.DirectEmbedding(embertable.FeatureConfig(table), strategy=embertable.EngineStrategy(threads=1))
>>> tables.embedding_lookup([2, 0]).tolist()
[[2.0, 2.0], [0.0, 0.0]])");
  }
  type.def(
      "look_up", look_up_directly, nb::arg("features").none(), nb::arg("weights") = nb::none(),
      R"(Gives (activations, lookup): what embedding_lookup gives, and the DirectLookup that gradients and
apply_gradients take.

features, weights: as of embedding_lookup. Raises what that raises.

>>> table = embertable.TableConfig(3, 1, embertable.Initializer.zeros(), name='t')
>>> tables = embertable.DirectEmbedding(embertable.FeatureConfig(table), embertable.SGD(0.5), embertable.EngineStrategy(threads=1))
>>> activations, lookup = tables.look_up([2, 0])
>>> tables.apply_gradients(lookup, np.ones_like(activations))
>>> tables.step
1)");
  type.def(
      "gradients", direct_gradients, nb::arg("lookups").none(), nb::arg("gradients").none(),
      R"(Gives the gradient with respect to the tables: a dict of RowGradients by TableConfig. Rows and sums have the
bits that an engine gives for the same entries.

lookups: a DirectLookup of this object, or a list of those of one step. gradients: one for each
activation, in the containers and of the shapes of the activations, for several replicas a PerReplica;
None counts as zeros; for a list of lookups a list of these.

Raises ValueError or TypeError naming replica and path for gradients of another structure or shape,
RuntimeError for a lookup of another object.

>>> table = embertable.TableConfig(3, 1, name='t')
>>> tables = embertable.DirectEmbedding(embertable.FeatureConfig(table), strategy=embertable.EngineStrategy(threads=1))
>>> _, query = tables.look_up([2, 0])
>>> _, item = tables.look_up([2])
>>> sums = tables.gradients([query, item], [[[1.0], [2.0]], [[4.0]]])[table]
>>> sums.indices.tolist(), sums.values.tolist()
([0, 2], [[2.0], [5.0]]))");
  type.def(
      "apply_gradients", apply_directly, nb::arg("lookups").none(), nb::arg("gradients").none(),
      nb::arg("update") = nb::none(),
      R"(Takes one step: each row that the lookups named takes one step of its table's optimizer with its summed
gradient. lookups, gradients: as of `gradients`.

update(TableUpdate): called instead for each table with named rows, in table order; it must not call
this object. If it raises, the object stays failed, and says so, until a restore.

Raises what `gradients` raises, and RuntimeError naming a table without optimizer.

>>> table = embertable.TableConfig(3, 1, embertable.Initializer.zeros(), name='t')
>>> tables = embertable.DirectEmbedding(embertable.FeatureConfig(table), strategy=embertable.EngineStrategy(threads=1))
>>> _, lookup = tables.look_up([2, 0])
>>> def descend(table):
...     table.parameters[table.rows] -= 0.5 * table.gradients
>>> tables.apply_gradients(lookup, [[1.0], [2.0]], descend)
>>> tables.read_rows('t', [0, 1, 2]).tolist()
[[-1.0], [0.0], [-0.5]])");
}

void bind_direct_rows(DirectClass& type) {
  type.def(
      "embedding_tables", direct_tables,
      R"(Gives a dict by TableConfig of arrays [vocabulary_size, dim] over the tables' own memory, to read and
write. Builds if need be. Nothing else may run while it is written. The dtype is the table's row_type; bfloat16 takes the package
ml_dtypes, else NotImplementedError is raised.

>>> table = embertable.TableConfig(3, 1, embertable.Initializer.zeros(), name='t')
>>> tables = embertable.DirectEmbedding(embertable.FeatureConfig(table), embertable.SGD(0.5), embertable.EngineStrategy(threads=1))
>>> tables.embedding_tables()[table][1] = 7
>>> tables([1]).tolist()
[[7.0]])");
  type.def(
      "read_rows",
      [](DirectTables& self, const std::string& variable, nb::handle ids) {
        return rows_read([&](auto work) { return self.ask(work); }, variable, ids);
      },
      nb::arg("variable"), nb::arg("ids").none(),
      R"(Gives rows of a variable: an array of shape ids.shape + [dim], for row-wise slots ids.shape.

variable: 'table' or 'table/slot'; ids: integers of any shape. Raises KeyError, IndexError.

>>> table = embertable.TableConfig(3, 1, embertable.Initializer.zeros(), name='t')
>>> tables = embertable.DirectEmbedding(embertable.FeatureConfig(table), embertable.SGD(0.5), embertable.EngineStrategy(threads=1))
>>> tables.read_rows('t', [2, 0]).tolist()
[[0.0], [0.0]])");
  type.def(
      "assign_rows",
      [](DirectTables& self, const std::string& variable, nb::handle ids, nb::handle values) {
        assign_rows_to([&](auto work) { return self.alone(work); }, variable, ids, values);
      },
      nb::arg("variable"), nb::arg("ids").none(), nb::arg("values").none(),
      R"(Overwrites rows, the last of repeated ids winning.

variable, ids: as of read_rows; values: floats of the shape that read_rows gives. Raises what read_rows
raises, ValueError for another shape.

>>> table = embertable.TableConfig(3, 1, embertable.Initializer.zeros(), name='t')
>>> tables = embertable.DirectEmbedding(embertable.FeatureConfig(table), embertable.SGD(0.5), embertable.EngineStrategy(threads=1))
>>> tables.assign_rows('t', [1, 2], [[4.0], [5.0]])
>>> tables.read_rows('t', [2]).tolist()
[[5.0]])");
  type.def(
      "save",
      [](DirectTables& self, nb::handle run, nb::handle state, nb::handle id_maps) {
        const CallerState kept = caller_state(state);
        const auto maps = id_maps_of(id_maps);
        const auto open = open_run(run);
        return self.ask([&](DirectEmbedding& direct) { return direct.save(*open, kept, maps); });
      },
      nb::arg("run"), nb::arg("state") = nb::none(), nb::arg("id_maps") = nb::none(),
      R"(Saves as Embedding.save does, and gives the directory of the step: each class restores the other's
checkpoints.

run: a path or a CheckpointRun; state: a CallerState; id_maps: a dict of IdMaps by name. Raises what
Embedding.save raises.

>>> table = embertable.TableConfig(3, 1, embertable.Initializer.zeros(), name='t')
>>> tables = embertable.DirectEmbedding(embertable.FeatureConfig(table), embertable.SGD(0.5), embertable.EngineStrategy(threads=1))
>>> saved = tables.save(directory + "/run")
>>> embertable.digest_checkpoint(saved) == tables.digest()
True)");
  type.def(
      "restore",
      [](DirectTables& self, const std::filesystem::path& path, nb::handle tables, bool partial) {
        const RestoreOptions options = restore_options(tables, partial, nb::none());
        return self.alone([&](DirectEmbedding& direct) { return direct.restore(path, options); });
      },
      nb::arg("path"), nb::arg("tables") = nb::none(), nb::arg("partial") = false,
      R"(Restores as Embedding.restore does, and gives a RestoreReport. Repairs a failed object.

path: of a run, whose latest step is taken, or of a step; tables: names of those to restore, None: all;
partial: others may be absent from the checkpoint. Raises what Embedding.restore raises.

>>> table = embertable.TableConfig(3, 1, embertable.Initializer.zeros(), name='t')
>>> tables = embertable.DirectEmbedding(embertable.FeatureConfig(table), embertable.SGD(0.5), embertable.EngineStrategy(threads=1))
>>> tables.restore(tables.save(directory + "/run")).step
0)");
  type.def(
      "digest",
      [](DirectTables& self) { return self.ask([](DirectEmbedding& d) { return d.digest(); }); },
      R"(Gives one hash of all tables and slots, that of an Embedding with the same values.

>>> table = embertable.TableConfig(3, 1, embertable.Initializer.zeros(), name='t')
>>> tables = embertable.DirectEmbedding(embertable.FeatureConfig(table), embertable.SGD(0.5), embertable.EngineStrategy(threads=1))
>>> len(tables.digest())
32)");
}

void bind_updates(nb::module_& module) {
  nb::class_<DirectLookup>(
      module, "DirectLookup", nb::type_slots(Collected<DirectLookup>::seen),
      R"(What a DirectEmbedding keeps of a lookup for its gradients. May be used again.

>>> table = embertable.TableConfig(3, 1, embertable.Initializer.zeros(), name='t')
>>> tables = embertable.DirectEmbedding(embertable.FeatureConfig(table), embertable.SGD(0.5), embertable.EngineStrategy(threads=1))
>>> activations, lookup = tables.look_up([2, 0])
>>> for _ in range(2):
...     tables.apply_gradients(lookup, np.ones_like(activations))
>>> tables.step
2)")
      .def("__repr__", described);
  nb::class_<TableUpdate>(
      module, "TableUpdate",
      R"(One table in an update of the caller's, see DirectEmbedding.apply_gradients.)")
      .def("__repr__", described)
      .def_ro("table", &TableUpdate::table, "Name of the table.")
      .def_ro("rows", &TableUpdate::rows, "int64 [n], rising: the rows that the batches named.")
      .def_ro("gradients", &TableUpdate::gradients,
              "float32 [n, dim]: the summed gradient of each.")
      .def_ro("parameters", &TableUpdate::parameters,
              "[vocabulary_size, dim], of the table's row_type: the table's memory, to write to. "
              "bfloat16 takes the package ml_dtypes.")
      .def_ro(
          "slots", &TableUpdate::slots,
          "By name, float32 [vocabulary_size, dim], or [vocabulary_size] if row-wise: to write to.")
      .def_ro("step", &TableUpdate::step, "Number of the step, 1 for the first.");
  module.def(
      "slots_only",
      [](nb::handle names, nb::handle create) {
        CallbackPtr creation;
        Optimizer made = slots_only_of(names, create, creation);
        return PythonOptimizer{
            .value = std::move(made),
            .slot_variable_creation_fn = std::move(creation),
            .recipe = nb::make_tuple("slots_only", nb::make_tuple(names, create), nb::dict())};
      },
      nb::arg("slot_names"), nb::arg("slot_variable_creation_fn") = nb::none(),
      R"(Gives an Optimizer that only declares the slots of a table: an update given to
DirectEmbedding.apply_gradients steps rows and slots.

slot_names: at most 7. slot_variable_creation_fn: as of an Optimizer; None: zeros. Raises ValueError for names that are empty or repeated, or too many.

>>> embertable.slots_only(['m', 'v']).rule
'slots_only')");
}

}  // namespace

void bind_direct(nb::module_& module) {
  bind_updates(module);
  DirectClass type(
      module, "DirectEmbedding", nb::type_slots(Collected<DirectTables>::slots),
      R"(Tables that are looked up and trained directly, without queues, built shapes or a batch size: for tables
that fit each replica, and models that differentiate and update by themselves. Any number of objects
live on one strategy. One copy of the tables serves all replicas.

Any number of threads may look up at once; apply_gradients, assign_rows and restore wait for other calls
to end. A call that raises leaves the object as it was.

>>> table = embertable.TableConfig(3, 1, embertable.Initializer.zeros(), name='t')
>>> tables = embertable.DirectEmbedding(embertable.FeatureConfig(table), embertable.SGD(0.5), embertable.EngineStrategy(threads=1))
>>> activations, lookup = tables.look_up([2, 2])
>>> tables.apply_gradients(lookup, activations - 1)
>>> tables.embedding_lookup([2]).tolist()
[[1.0]])");
  bind_direct_construction(type);
  bind_direct_steps(type);
  bind_direct_rows(type);
  bind_description(type);
}

}  // namespace embertable::python
