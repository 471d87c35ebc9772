// Binds tables that are only looked up.
#include "embertable/serving.h"

#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <vector>

#include "python/src/arguments.h"
#include "python/src/arrays.h"
#include "python/src/batches.h"
#include "python/src/bindings.h"
#include "python/src/calls.h"
#include "python/src/checkpoint.h"
#include "python/src/classes/collected.h"
#include "python/src/classes/described.h"
#include "python/src/configuration.h"
#include "python/src/dict_items.h"
#include "python/src/engine.h"
#include "python/src/fair_shared_mutex.h"
#include "python/src/gil.h"
#include "python/src/python_config.h"
#include "python/src/row_gradients.h"
#include "python/src/runs.h"
#include "python/src/text_caster.h"
#include "python/src/tracing.h"

namespace embertable::python {
namespace {

/// A `ServingEmbedding` with the caller's configuration. Lookups run concurrently, a restore alone.
class Server {
 public:
  /// `outputs` names the kind of arrays that results are.
  Server(Configuration configuration, ServingEmbedding served, nb::object outputs)
      : configuration_(std::move(configuration)),
        outputs_(std::move(outputs)),
        convert_(converter_of(outputs_)),
        served_(std::move(served)) {}

  template <class Work>
  auto ask(Work work) {
    refuse_recording("the embedding");
    const Inside here(this);
    const WithoutGil nogil;
    const std::shared_lock lock(exclusive_);
    return work(served_);
  }
  template <class Work>
  auto alone(Work work) {
    refuse_recording("the embedding");
    const Inside here(this);
    const WithoutGil nogil;
    const std::unique_lock lock(exclusive_);
    return work(served_);
  }

  /// Replaces tables. Throws StateError while arrays over them are alive.
  RestoreReport restore(const std::filesystem::path& path, const RestoreOptions& options) {
    return alone([&](ServingEmbedding& served) {
      if (views_.use_count() > 1)
        throw StateError("restore: arrays that embedding_tables gave are alive");
      return served.restore(path, options);
    });
  }

  /// Returns an object; while a copy of it lives there is no restore.
  std::shared_ptr<const void> view() const { return views_; }

  const Configuration& configuration() const noexcept { return configuration_; }
  const ServingEmbedding& served() const noexcept { return served_; }
  const nb::object& outputs() const noexcept { return outputs_; }
  const nb::object& convert() const noexcept { return convert_; }

  template <class Visit>
  void references(Visit visit) {
    configuration_.references(visit);
    visit(outputs_);
    visit(convert_);
  }

 private:
  Configuration configuration_;
  nb::object outputs_;
  nb::object convert_;  ///< makes one of NumPy's array; None where results stay NumPy's
  FairSharedMutex exclusive_;
  std::shared_ptr<const void> views_ = std::make_shared<int>();
  ServingEmbedding served_;
};

ServingOptions options_of(const std::string& tables, const std::string& checks, nb::handle threads,
                          nb::handle seed) {
  ServingOptions options;
  if (tables != "map" && tables != "load")
    throw ValueError("tables must be 'map' or 'load', got '" + tables + "'");
  options.tables = tables == "map" ? OpenTables::kMap : OpenTables::kLoad;
  if (checks != "lazy" && checks != "full" && checks != "none")
    throw ValueError("checks must be 'lazy', 'full' or 'none', got '" + checks + "'");
  options.checks = checks == "lazy"   ? Checks::kLazy
                   : checks == "full" ? Checks::kFull
                                      : Checks::kNone;
  if (!threads.is_none()) options.executor = make_thread_pool(integer32(threads, "threads"));
  options.seed = seed_of(seed);
  return options;
}

void construct_server(Server* self, nb::handle feature_config, nb::handle optimizer,
                      nb::handle strategy, const std::string& tables, const std::string& checks,
                      nb::handle threads, nb::handle seed, nb::object outputs) {
  Rates rates;
  Configuration configuration(feature_config, rates);
  ServingEmbedding served(configuration.features(), optimizer_of(optimizer, rates),
                          strategy_of(strategy), options_of(tables, checks, threads, seed));
  new (self) Server(std::move(configuration), std::move(served), std::move(outputs));
}

std::unique_ptr<Server> open(const std::filesystem::path& run, nb::handle feature_config,
                             const std::string& tables, const std::string& checks,
                             nb::handle threads, nb::handle seed, nb::object outputs,
                             nb::handle step) {
  const ServingOptions options = options_of(tables, checks, threads, seed);
  const std::filesystem::path path = run_or_step(run, step);
  Rates rates;
  std::optional<Configuration> configuration;
  if (!feature_config.is_none()) configuration.emplace(feature_config, rates);
  warn_of_skipped("open", path);
  ServingEmbedding served = [&] {
    const WithoutGil nogil;
    return configuration ? ServingEmbedding::open(path, configuration->features(), options)
                         : ServingEmbedding::open(path, options);
  }();
  if (!configuration) configuration.emplace(served.feature_config());
  return std::make_unique<Server>(std::move(*configuration), std::move(served), std::move(outputs));
}

/// Returns arrays over the results of a lookup, in the containers of its inputs. `convert` makes
/// others of NumPy's, unless it is None.
nb::object arrays_of(nb::handle inputs, LookupOutput output, const nb::object& convert) {
  auto* kept = new LookupOutput(std::move(output));
  const nb::object owner =
      nb::capsule(kept, [](void* held) noexcept { delete static_cast<LookupOutput*>(held); });
  return pack(inputs, kept->structure(), numpy_views(*kept, owner, convert));
}

nb::object served_lookup(Server& self, nb::handle features, nb::handle weights) {
  const Batches read = read_batches(features, weights, self.configuration().structure());
  const Batch& batch = read.only();
  return arrays_of(
      features, self.ask([&](ServingEmbedding& served) { return served.embedding_lookup(batch); }),
      self.convert());
}

nb::object read_served_rows(Server& self, const std::string& table, nb::handle rows) {
  const IntegerArray numbers(rows, "read_rows: rows");
  Shape shape = numbers.shape();
  for (const TableInfo& info : self.served().tables())
    if (info.name == table) shape = shape.append(info.dim);
  const nb::object out = new_floats(shape);
  const WritableArray memory(out, "read_rows: out");
  self.ask(
      [&](ServingEmbedding& served) { served.read_rows(table, numbers.span(), memory.span()); });
  return out;
}

/// Returns an object that keeps the memory of a server's tables in place.
nb::object hold(nb::handle self) {
  using Held = std::pair<nb::object, std::shared_ptr<const void>>;
  return nb::capsule(new Held(nb::borrow(self), nb::cast<Server&>(self).view()),
                     [](void* held) noexcept { delete static_cast<Held*>(held); });
}

nb::dict served_tables(nb::handle self) {
  auto& server = nb::cast<Server&>(self);
  const nb::object owner = hold(self);
  const auto views = server.ask([](ServingEmbedding& served) { return served.embedding_tables(); });
  nb::dict arrays;
  for (const auto& [table, view] : views) {
    const nb::object object = server.configuration().object_of(table);
    if (!object.is_valid()) continue;  // no feature looks up this table of the checkpoint
    arrays[object] = numpy_rows(view, owner, false);
  }
  return arrays;
}

/// Returns views of the caller's tables, each kept during the call.
std::map<TablePtr, TableView> views_of(const Configuration& configuration, nb::handle tables,
                                       std::vector<FloatRows>& kept) {
  std::map<TablePtr, TableView> views;
  if (!PyDict_Check(tables.ptr()))
    throw TypeError("tables must be a dict of arrays by TableConfig, got " + type_text(tables));
  for (const auto& [object, rows] : items_of(tables)) {
    if (!nb::isinstance<PythonTable>(object))
      throw TypeError("the keys of tables must be TableConfig objects, got " +
                      text(nb::repr(object)));
    const TablePtr table = configuration.table_of(object);
    if (!table) continue;  // other features use this table
    kept.emplace_back(rows, "table '" + table->name.value_or("") + "'");
    const TableView view = kept.back().view();
    if (view.rows != table->vocabulary_size || view.dim != table->dim) {
      throw ValueError("table '" + table->name.value_or("") + "' must have shape (" +
                       std::to_string(table->vocabulary_size) + ", " + std::to_string(table->dim) +
                       "), got (" + std::to_string(view.rows) + ", " + std::to_string(view.dim) +
                       ")");
    }
    views.emplace(table, view);
  }
  return views;
}

/// The arguments of a lookup in the caller's tables, with everything that they borrow from.
struct CallersTables {
  CallersTables(nb::handle inputs, nb::handle weights, nb::handle tables, nb::handle feature_config)
      : configuration(feature_config, rates),
        views(views_of(configuration, tables, kept)),
        read(read_batches(inputs, weights, configuration.structure())) {}

  Rates rates;
  Configuration configuration;
  std::vector<FloatRows> kept;
  std::map<TablePtr, TableView> views;
  Batches read;
};

nb::object serving_embedding_lookup(nb::handle inputs, nb::handle weights, nb::handle tables,
                                    nb::handle feature_config, const std::string& revision) {
  refuse_recording("serving_embedding_lookup");
  const ApiRevision rules = revision_of(revision);
  const CallersTables given(inputs, weights, tables, feature_config);
  const Batch& batch = given.read.only();
  LookupOutput output = [&] {
    const WithoutGil nogil;
    return embertable::serving_embedding_lookup(batch, given.views, given.configuration.features(),
                                                rules);
  }();
  return arrays_of(inputs, std::move(output), nb::none());
}

nb::dict serving_embedding_gradients(nb::handle inputs, nb::handle weights, nb::handle gradients,
                                     nb::handle tables, nb::handle feature_config) {
  refuse_recording("serving_embedding_gradients");
  const CallersTables given(inputs, weights, tables, feature_config);
  const Batch& batch = given.read.only();
  const Gradients upstream = read_gradients(gradients, batch.features.structure());
  if (upstream.trees.size() != 1)
    throw ValueError("one tree of gradients is taken here, got a PerReplica of " +
                     std::to_string(upstream.trees.size()));
  const auto sums = [&] {
    const WithoutGil nogil;
    return embertable::serving_embedding_gradients(batch, upstream.trees.front(), given.views,
                                                   given.configuration.features());
  }();
  return row_gradients(sums, given.configuration);
}

nb::dict id_maps(Server& self) {
  nb::dict maps;
  for (auto& [name, map] : self.ask([](ServingEmbedding& served) { return served.id_maps(); }))
    maps[decoded(name)] = nb::cast(map);
  return maps;
}

using ServerClass = nb::class_<Server>;

void bind_opening(ServerClass& type) {
  type.def("__init__", construct_server, nb::arg("feature_config").none(),
           nb::arg("optimizer") = nb::none(), nb::arg("strategy") = nb::none(), nb::kw_only(),
           nb::arg("tables") = "load", nb::arg("checks") = "lazy", nb::arg("threads") = nb::none(),
           nb::arg("seed") = 0, nb::arg("outputs") = "numpy");
  type.def_static("open", open, nb::arg("path"), nb::arg("feature_config") = nb::none(),
                  nb::kw_only(), nb::arg("tables") = "load", nb::arg("checks") = "lazy",
                  nb::arg("threads") = nb::none(), nb::arg("seed") = 0,
                  nb::arg("outputs") = "numpy", nb::arg("step") = nb::none(),
                  R"(Opens the tables of a checkpoint for lookups.

path: a step's directory, or a run's latest. feature_config: a tree of FeatureConfigs; None: the features
that the checkpoint names, a dict by their paths, and all tables. tables: "load" copies the rows now, "map"
reads them from the files; checks: "lazy" (each block at first touch), "full", "none". threads: of the
lookups, None: one per CPU. seed: of first values that the checkpoint lacks. outputs: the kind of arrays
that results are. step: the number of a step of the run, None: the latest. Raises OSError, DataLossError,
ValueError naming tables that do not fit.

>>> table = embertable.TableConfig(8, 4, name="films")
>>> embedding = embertable.Embedding(embertable.FeatureConfig(table), embertable.Adagrad(0.1))
>>> embedding.build()
>>> serving = embertable.ServingEmbedding.open(embedding.save(directory + "/run"))
>>> [info.name for info in serving.tables]
['films'])");
  type.def(
      "restore",
      [](Server& self, const std::filesystem::path& path, nb::handle tables, bool partial) {
        return self.restore(path, restore_options(tables, partial, nb::none()));
      },
      nb::arg("path"), nb::arg("tables") = nb::none(), nb::arg("partial") = false,
      R"(Replaces tables by those of a checkpoint with the same names. Gives a RestoreReport. Lookups wait.

path: a step's directory, or a run's; tables: names, only these; partial: what does not fit stays. Raises
RuntimeError while arrays that embedding_tables gave are alive; otherwise as Embedding.restore.

>>> table = embertable.TableConfig(8, 4, name="films")
>>> embedding = embertable.Embedding(embertable.FeatureConfig(table), embertable.Adagrad(0.1))
>>> embedding.build()
>>> serving = embertable.ServingEmbedding(embertable.FeatureConfig(table))
>>> serving.restore(embedding.save(directory + "/run")).step
0)");
  type.def(
      "build", [](Server& self) { self.ask([](ServingEmbedding& s) { s.build(); }); },
      R"(Gives the tables that were not restored their first values.

>>> config = {"film": embertable.FeatureConfig(embertable.TableConfig(8, 4, name="films"))}
>>> serving = embertable.ServingEmbedding(config)
>>> serving.build()
>>> serving.built
True)");
  type.def_prop_ro("built", [](const Server& self) { return self.served().built(); });
}

void bind_lookups(ServerClass& type) {
  type.def(
      "embedding_lookup", served_lookup, nb::arg("features").none(),
      nb::arg("weights") = nb::none(),
      R"(Looks ids up. Gives arrays S + [dim] in the containers of the features. Any number of threads may call.

features: ids in the containers of feature_config, or a part of them; weights: None, or weights in the
containers of the features. Ids below 0 and weights not above 0 are left out where the feature says so.
Raises ValueError, TypeError and DataError naming feature, position and rule.

>>> config = {"film": embertable.FeatureConfig(embertable.TableConfig(8, 4, name="films"))}
>>> serving = embertable.ServingEmbedding(config)
>>> serving.embedding_lookup({"film": np.array([1, 2])})["film"].shape
(2, 4))");
  type.def(
      "__call__", served_lookup, nb::arg("features").none(), nb::arg("weights") = nb::none(),
      R"(Looks ids up. Gives arrays S + [dim] in the containers of the features. Any number of threads may call.

features: ids in the containers of feature_config, or a part of them; weights: None, or weights in the
containers of the features. Ids below 0 and weights not above 0 are left out where the feature says so.
Raises ValueError, TypeError and DataError naming feature, position and rule.

>>> config = {"film": embertable.FeatureConfig(embertable.TableConfig(8, 4, name="films"))}
>>> serving = embertable.ServingEmbedding(config)
>>> serving({"film": np.array([1, 2])})["film"].shape
(2, 4))");
  type.def(
      "embedding_tables", served_tables,
      R"(Gives, by TableConfig, a read-only array [vocabulary_size, dim] over each table's memory. Rows of bfloat16 take the package
ml_dtypes, else NotImplementedError is raised. Rows of int8 are copied as float32, and the copy stays as long as this object.

>>> config = {"film": embertable.FeatureConfig(embertable.TableConfig(8, 4, name="films"))}
>>> serving = embertable.ServingEmbedding(config)
>>> serving.embedding_tables()[config["film"].table].shape
(8, 4))");
  type.def("read_rows", read_served_rows, nb::arg("table"), nb::arg("rows"),
           R"(Gives rows of a table, of shape rows.shape + [dim].

table: its name; rows: integers of any shape. Raises KeyError for an unknown table, IndexError for a row
outside it.

>>> config = {"film": embertable.FeatureConfig(embertable.TableConfig(8, 4, name="films"))}
>>> serving = embertable.ServingEmbedding(config)
>>> serving.read_rows("films", [1, 2]).shape
(2, 4))");
}

void bind_questions(ServerClass& type) {
  bind_description(type);
  type.def_prop_ro("feature_config",
                   [](const Server& self) { return self.configuration().tree(); });
  type.def_prop_ro("tables", [](const Server& self) { return self.served().tables(); });
  type.def_prop_ro("outputs", &Server::outputs, "The kind of arrays that results are.");
  type.def_prop_ro(
      "step", [](const Server& self) { return self.served().step(); },
      "Of the checkpoint that was last opened or restored, else 0.");
  type.def(
      "caller_state",
      [](Server& self) {
        return to_python(self.ask([](ServingEmbedding& served) { return served.caller_state(); }));
      },
      R"(Gives the CallerState of the checkpoint that was opened or restored; an empty one if there was none.
Raises OSError, DataLossError.

>>> config = {"film": embertable.FeatureConfig(embertable.TableConfig(8, 4, name="films"))}
>>> serving = embertable.ServingEmbedding(config)
>>> serving.caller_state().json is None
True)");
  type.def("id_maps", id_maps,
           R"(Gives the IdMaps by name of the checkpoint that was opened or restored.

>>> config = {"film": embertable.FeatureConfig(embertable.TableConfig(8, 4, name="films"))}
>>> serving = embertable.ServingEmbedding(config)
>>> serving.id_maps()
{})");
}

}  // namespace

void bind_serving(nb::module_& module) {
  ServerClass type(
      module, "ServingEmbedding", nb::type_slots(Collected<Server>::seen),
      R"(Tables that are only looked up: with their first values, or of a checkpoint (see open, restore). Any number of threads may call.

feature_config: a tree of FeatureConfigs; optimizer: whose slots are not there; strategy: must be None. tables: "map" the files
or "load" them; checks: "lazy", "full" or "none"; threads: of the lookups, None: one per CPU; seed: of first values; outputs: the
kind of arrays that results are, "numpy", "tensorflow", "torch" or "jax". Raises RuntimeError for a strategy, ValueError and
TypeError naming the field.

Mapped rows are read from their files by the lookups. Removing the files is harmless, but a program that cuts one short ends this
process (SIGBUS), and one that writes into it may change rows that were checked. Where others may do so, tables="load" copies the
rows when it opens.

>>> config = {"film": embertable.FeatureConfig(embertable.TableConfig(8, 4, name="films"))}
>>> serving = embertable.ServingEmbedding(config)
>>> serving({"film": np.array([1, 2])})["film"].shape
(2, 4))");
  bind_opening(type);
  bind_lookups(type);
  bind_questions(type);
  module.def("serving_embedding_lookup", serving_embedding_lookup, nb::arg("inputs").none(),
             nb::arg("weights").none(), nb::arg("tables"), nb::arg("feature_config"), nb::kw_only(),
             nb::arg("revision") = "output_shapes",
             R"(Looks inputs up in tables of the caller's. A pure function of its arguments.

inputs: ids in the containers of feature_config, or a part of them; weights: None, or weights in the
containers of the inputs; tables: a dict by TableConfig of arrays [vocabulary_size, dim]; feature_config: a
tree of FeatureConfigs. revision: "batch_size" for the rules of TensorFlow 2.4, all features and no
sequences. Gives arrays S + [dim] in the containers of the inputs. Raises KeyError for a table
that is not given, ValueError, TypeError and DataError naming feature and rule.

>>> table = embertable.TableConfig(3, 2)
>>> rows = np.arange(6, dtype=np.float32).reshape(3, 2)
>>> embertable.serving_embedding_lookup(np.array([2]), None, {table: rows}, embertable.FeatureConfig(table)).tolist()
[[4.0, 5.0]])");
  module.def(
      "serving_embedding_gradients", serving_embedding_gradients, nb::arg("inputs").none(),
      nb::arg("weights").none(), nb::arg("gradients").none(), nb::arg("tables"),
      nb::arg("feature_config"),
      R"(Gives the gradient of serving_embedding_lookup with respect to its tables: a dict of RowGradients by
TableConfig. A pure function of its arguments.

inputs, weights, tables, feature_config: as of the lookup. gradients: one for each activation, packed
like the inputs, of the activation's shape; None counts as zeros.

Raises what the lookup raises, and ValueError or TypeError naming the path of a gradient of another
structure or shape.

>>> table = embertable.TableConfig(3, 2, combiner='sum', name='t')
>>> rows = {table: np.zeros((3, 2), np.float32)}
>>> got = embertable.serving_embedding_gradients(embertable.RaggedIds.from_rows([[0, 2], [2]]), None,
...                                              np.ones((2, 2)), rows, embertable.FeatureConfig(table))
>>> got[table].indices.tolist(), got[table].values.tolist()
([0, 2], [[1.0, 1.0], [2.0, 2.0]]))");
}

}  // namespace embertable::python
