// Binds runs of saved steps, and saving and restoring of an engine.
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/vector.h>

#include "python/src/arguments.h"
#include "python/src/bindings.h"
#include "python/src/checkpoint.h"
#include "python/src/classes/copies.h"
#include "python/src/classes/described.h"
#include "python/src/classes/explained_calls.h"
#include "python/src/engine.h"
#include "python/src/gil.h"
#include "python/src/text_caster.h"

namespace embertable::python {
namespace {

using Path = std::filesystem::path;

/// A CheckpointRun that Python can close; a save in progress keeps it open.
struct PythonRun {
  Path directory;
  std::shared_ptr<CheckpointRun> run;
};

std::shared_ptr<CheckpointRun> opened(const PythonRun& self) {
  if (!self.run) throw StateError("run '" + self.directory.string() + "' is closed");
  return self.run;
}

void construct_run(PythonRun* self, const Path& directory, nb::handle strategy) {
  const StrategyPtr of = strategy_of(strategy);
  const WithoutGil nogil;
  new (self) PythonRun{directory, of ? std::make_shared<CheckpointRun>(directory, *of)
                                     : std::make_shared<CheckpointRun>(directory)};
}

void close(PythonRun& self) {
  const auto last = std::move(self.run);
  const WithoutGil nogil;
}

/// Returns a path. Throws TypeError for what is not a path.
Path path_of(nb::handle value, const char* what) {
  Path path;
  if (!nb::try_cast(value, path))
    throw TypeError(std::string(what) + " must be a path or a CheckpointRun, got " +
                    type_text(value));
  return path;
}

Path save(Engine& self, nb::handle run, nb::handle state, nb::handle id_maps) {
  const CallerState kept = caller_state(state);
  const auto maps = id_maps_of(id_maps);
  if (const PythonRun* given = nullptr; nb::try_cast(run, given) && given) {
    const auto open = opened(*given);
    return self.run([&](const Embedding& e) { return e.save(*open, kept, maps); });
  }
  const Path directory = path_of(run, "run");
  return self.run([&](const Embedding& e) { return e.save(directory, kept, maps); });
}

RestoreReport restore(Engine& self, const Path& run, nb::handle tables, bool partial,
                      nb::handle grow, nb::handle step) {
  const Path path = run_or_step(run, step);
  const RestoreOptions options = restore_options(tables, partial, grow);
  return self.run([&](Embedding& e) { return e.restore(path, options); });
}

void bind_run(nb::module_& module) {
  nb::class_<PythonRun> type(
      module, "CheckpointRun", nb::type_slots(explained_slots),
      R"(A run directory, open for saving: until it is closed no other process, and no other object of this one, saves there. Also a
context manager.

directory: made if it is not there; strategy: that of the engines that save there; if its hosts are processes, all of them
open the run together. Raises RuntimeError if another has it open, OSError.

>>> with embertable.CheckpointRun(directory + "/run") as run:
...     run.steps()
[])");
  type.def("__init__", construct_run, nb::arg("directory"), nb::arg("strategy") = nb::none())
      .def_prop_ro("directory", [](const PythonRun& self) { return self.directory; })
      .def(
          "steps",
          [](const PythonRun& self) {
            const auto run = opened(self);
            const WithoutGil nogil;
            return run->steps();
          },
          R"(Gives the numbers of the steps that are saved there, rising.

>>> with embertable.CheckpointRun(directory + "/run") as run:
...     run.steps()
[])")
      .def(
          "keep",
          [](const PythonRun& self, nb::handle newest) {
            const auto run = opened(self);
            const std::int64_t number = integer(newest, "newest");
            const WithoutGil nogil;
            run->keep(number);
          },
          nb::arg("newest"), R"(Removes the steps below the newest highest ones that can be opened.

newest: how many stay, >= 1. Raises ValueError, OSError.

>>> with embertable.CheckpointRun(directory + "/run") as run:
...     for step in (1, 2, 3):
...         saved = embertable.save_variables(run, step, {"v": embertable.Variable([1.0])})
...     run.keep(2)
...     run.steps()
[2, 3])")
      .def("__repr__", described)
      .def(
          "close", close,
          R"(Ends it: others may save there. A save in progress goes on. Calls afterwards raise RuntimeError.

>>> run = embertable.CheckpointRun(directory + "/run")
>>> run.close())")
      .def("__enter__", [](nb::handle self) { return nb::borrow(self); })
      .def("__exit__", [](PythonRun& self, const nb::args&) { close(self); });
}

void bind_report(nb::module_& module) {
  nb::class_<RestoreReport> type(
      module, "RestoreReport",
      R"(What a restore found. Variables by name, 'films' or 'films/accumulators'. It pickles and copies.

>>> table = embertable.TableConfig(8, 4, name="films")
>>> embedding = embertable.Embedding(embertable.FeatureConfig(table), embertable.Adagrad(0.1))
>>> embedding.build()
>>> embedding.restore(embedding.save(directory + "/run"))
RestoreReport(step=0, missing=[], extra=[], mismatched=[], skipped=[], grown=[]))");
  type.def("__repr__", described)
      .def_ro("step", &RestoreReport::step)
      .def_ro("directory", &RestoreReport::directory)
      .def_prop_ro("caller", [](const RestoreReport& self) { return to_python(self.caller); })
      .def_ro("id_maps", &RestoreReport::id_maps)
      .def_ro("missing", &RestoreReport::missing, "The engine's that the checkpoint lacks.")
      .def_ro("extra", &RestoreReport::extra, "The checkpoint's that the engine lacks.")
      .def_ro("mismatched", &RestoreReport::mismatched, "With both shapes: not changed.")
      .def_ro("skipped", &RestoreReport::skipped, "Why higher steps of the run were not taken.")
      .def_ro("grown", &RestoreReport::grown, "Tables with more rows than were saved.");
  bind_copies<RestoreReport>(
      type,
      [](const RestoreReport& self) {
        return nb::make_tuple(self.step, self.directory, to_python(self.caller), self.id_maps,
                              self.missing, self.extra, self.mismatched, self.skipped, self.grown);
      },
      [](const nb::tuple& state) {
        using Names = std::vector<std::string>;
        return RestoreReport{.step = nb::cast<std::int64_t>(state[0]),
                             .directory = nb::cast<Path>(state[1]),
                             .caller = caller_state(state[2]),
                             .id_maps = id_maps_of(state[3]),
                             .missing = nb::cast<Names>(state[4]),
                             .extra = nb::cast<Names>(state[5]),
                             .mismatched = nb::cast<Names>(state[6]),
                             .skipped = nb::cast<Names>(state[7]),
                             .grown = nb::cast<Names>(state[8])};
      });
}

}  // namespace

std::shared_ptr<CheckpointRun> open_run(nb::handle run) {
  if (const PythonRun* given = nullptr; nb::try_cast(run, given) && given) return opened(*given);
  const Path directory = path_of(run, "run");
  const WithoutGil nogil;
  return std::make_shared<CheckpointRun>(directory);
}

RestoreOptions restore_options(nb::handle tables, bool partial, nb::handle grow) {
  RestoreOptions options;
  options.partial = partial;
  const auto names = [](nb::handle given, const char* what, std::vector<std::string>& out) {
    if (PyUnicode_Check(given.ptr()) || !nb::try_cast(given, out))
      throw TypeError(std::string(what) + " must be a list of names, got " + type_text(given));
  };
  if (!grow.is_none()) names(grow, "grow", options.grow);
  if (tables.is_none()) return options;
  names(tables, "tables", options.tables);
  if (options.tables.empty()) throw ValueError("tables must have a name, or be None for all");
  return options;
}

void bind_saving(nb::module_& module) {
  bind_run(module);
  bind_report(module);
}

void bind_saving_of(nb::class_<Engine>& type) {
  type.def(
      "save", save, nb::arg("run"), nb::arg("state") = nb::none(), nb::arg("id_maps") = nb::none(),
      R"(Saves every table and slot, a CallerState and id maps as one step of a run, in one commit. Gives the
step's directory.

run: the run's directory, or a CheckpointRun. state: a CallerState; id_maps: IdMaps by name. Raises
RuntimeError unless built or restored, and if the step is saved already; ValueError, OSError. The
directory then holds what it held before. Ctrl-C ends it before the commit, and leaves nothing of it; a
KeyboardInterrupt that comes after the commit is raised too: find_checkpoint says what is saved.

>>> table = embertable.TableConfig(8, 4, name="films")
>>> embedding = embertable.Embedding(embertable.FeatureConfig(table), embertable.Adagrad(0.1))
>>> embedding.build()
>>> step = embedding.save(directory + "/run", embertable.CallerState({"epoch": 1}))
>>> embertable.read_saved_state(step).caller.json
{'epoch': 1})");
  type.def(
      "restore", restore, nb::arg("path"), nb::arg("tables") = nb::none(),
      nb::arg("partial") = false, nb::arg("grow") = nb::none(), nb::kw_only(),
      nb::arg("step") = nb::none(),
      R"(Takes tables and slots from a checkpoint, before or after build, saved on any number of hosts. Gives a
RestoreReport.

path: a step's directory, or a run's, which stands for its latest step. tables: names, only these.
partial: what the checkpoint lacks or has in another shape stays, and is reported. grow: names of tables
that may have more rows than were saved, the new ones with their first values. step: the number of a step
of the run, None: the latest. Raises RuntimeError while a
dequeued batch lacks its gradients, KeyError for a selected table that is not there, ValueError naming all
tables that do not fit, OSError, DataLossError naming file and block. Ctrl-C ends it before the first row
changes, or not at all.

>>> table = embertable.TableConfig(8, 4, name="films")
>>> embedding = embertable.Embedding(embertable.FeatureConfig(table), embertable.Adagrad(0.1))
>>> embedding.build()
>>> step = embedding.save(directory + "/run")
>>> embedding.restore(step).missing
[])");
}

}  // namespace embertable::python
