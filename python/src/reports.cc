// Binds the reports of an engine.
#include <nanobind/stl/array.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <cstdio>

#include "python/src/bindings.h"
#include "python/src/classes/copies.h"
#include "python/src/classes/described.h"
#include "python/src/engine.h"
#include "python/src/text_caster.h"

namespace embertable::python {
namespace {

void bind_table_info(nb::module_& module) {
  nb::class_<TableInfo> info(module, "TableInfo",
                             R"(Name, size and place of a table as the engine holds it.

>>> table = embertable.TableConfig(8, 4, name="films")
>>> embedding = embertable.Embedding(embertable.FeatureConfig(table), embertable.Adagrad(0.1))
>>> embedding.tables
[TableInfo('films', 8 x 4)])");
  info.def_ro("name", &TableInfo::name)
      .def_ro("vocabulary_size", &TableInfo::vocabulary_size)
      .def_ro("dim", &TableInfo::dim)
      .def_prop_ro("combiner",
                   [](const TableInfo& self) { return std::string(to_string(self.combiner)); })
      .def_ro("optimizer", &TableInfo::optimizer, "Text of the optimizer, '' for none.")
      .def_ro("slots", &TableInfo::slots)
      .def_prop_ro("row_type",
                   [](const TableInfo& self) { return std::string(to_string(self.row_type)); })
      .def_ro("trainable", &TableInfo::trainable,
              "Whether the caller may train the rows; those of an engine with a strategy change by "
              "apply_gradients alone.")
      .def("__repr__", [](const TableInfo& self) {
        return "TableInfo('" + self.name + "', " + std::to_string(self.vocabulary_size) + " x " +
               std::to_string(self.dim) + ")";
      });
  bind_copies<TableInfo>(
      info,
      [](const TableInfo& self) {
        return nb::make_tuple(self.name, self.vocabulary_size, self.dim,
                              std::string(to_string(self.combiner)), self.optimizer, self.slots,
                              self.trainable, std::string(to_string(self.row_type)));
      },
      [](const nb::tuple& state) {
        return TableInfo{.name = nb::cast<std::string>(state[0]),
                         .vocabulary_size = nb::cast<std::int64_t>(state[1]),
                         .dim = nb::cast<std::int32_t>(state[2]),
                         .combiner = parse_combiner(nb::cast<std::string>(state[3])),
                         .optimizer = nb::cast<std::string>(state[4]),
                         .slots = nb::cast<std::vector<TableInfo::Slot>>(state[5]),
                         .trainable = nb::cast<bool>(state[6]),
                         .row_type = parse_row_type(nb::cast<std::string>(state[7]))};
      });
  nb::class_<TableInfo::Slot> slot(info, "Slot", R"(Optimizer state beside the rows of a table.

>>> table = embertable.TableConfig(8, 4, name="films")
>>> embedding = embertable.Embedding(embertable.FeatureConfig(table), embertable.Adagrad(0.1))
>>> embedding.tables[0].slots
[Slot('accumulators')])");
  bind_copies<TableInfo::Slot>(
      slot, [](const TableInfo::Slot& self) { return nb::make_tuple(self.name, self.row_wise); },
      [](const nb::tuple& state) {
        return TableInfo::Slot{.name = nb::cast<std::string>(state[0]),
                               .row_wise = nb::cast<bool>(state[1])};
      });
  slot.def_ro("name", &TableInfo::Slot::name)
      .def_ro("row_wise", &TableInfo::Slot::row_wise, "One number per row instead of dim.")
      .def_ro("trainable", &TableInfo::Slot::trainable,
              "Always False: only the optimizer writes slots.")
      .def("__repr__", [](const TableInfo::Slot& self) {
        return "Slot('" + self.name + (self.row_wise ? "', row_wise)" : "')");
      });
}

void bind_memory(nb::module_& module) {
  nb::class_<MemoryReport::Entry> entry(module, "MemoryEntry",
                                        R"(Bytes of one table, slot or of the scratch memory.

>>> table = embertable.TableConfig(8, 4, name="films")
>>> embedding = embertable.Embedding(embertable.FeatureConfig(table), embertable.Adagrad(0.1))
>>> embedding.build()
>>> embedding.memory()[0].bytes >= 8 * 4 * 4
True)");
  bind_copies<MemoryReport::Entry>(
      entry,
      [](const MemoryReport::Entry& self) {
        return nb::make_tuple(self.name, self.bytes, self.resident_bytes, self.huge_page_share);
      },
      [](const nb::tuple& state) {
        return MemoryReport::Entry{.name = nb::cast<std::string>(state[0]),
                                   .bytes = nb::cast<std::int64_t>(state[1]),
                                   .resident_bytes = nb::cast<std::int64_t>(state[2]),
                                   .huge_page_share = nb::cast<double>(state[3])};
      });
  entry.def_ro("name", &MemoryReport::Entry::name)
      .def_ro("bytes", &MemoryReport::Entry::bytes, "Mapped, padding included.")
      .def_ro("resident_bytes", &MemoryReport::Entry::resident_bytes)
      .def_ro("huge_page_share", &MemoryReport::Entry::huge_page_share,
              "Of the resident bytes, 0..1, by the kernel's account.")
      .def("__repr__", [](const MemoryReport::Entry& self) {
        return "MemoryEntry('" + self.name + "', bytes=" + std::to_string(self.bytes) + ")";
      });
}

void bind_statistics(nb::module_& module) {
  nb::class_<StepStatistics> statistics(module, "StepStatistics", R"(What the last step did.

>>> table = embertable.TableConfig(8, 4, name="films")
>>> embedding = embertable.Embedding(embertable.FeatureConfig(table), embertable.SGD(0.1), embertable.EngineStrategy(threads=1))
>>> embedding.enqueue(np.array([1, 1]), training=False)
>>> activations = embedding.dequeue()
>>> embedding.last_step.tables[0].entries
2)");
  bind_copies<StepStatistics>(
      statistics,
      [](const StepStatistics& self) {
        return nb::make_tuple(self.tables, self.forward_workers, self.update_workers,
                              self.forward_seconds, self.update_seconds);
      },
      [](const nb::tuple& state) {
        return StepStatistics{.tables = nb::cast<std::vector<StepStatistics::Table>>(state[0]),
                              .forward_workers = nb::cast<std::int32_t>(state[1]),
                              .update_workers = nb::cast<std::int32_t>(state[2]),
                              .forward_seconds = nb::cast<double>(state[3]),
                              .update_seconds = nb::cast<double>(state[4])};
      });
  statistics.def("__repr__", described)
      .def_ro("tables", &StepStatistics::tables)
      .def_ro("forward_workers", &StepStatistics::forward_workers)
      .def_ro("update_workers", &StepStatistics::update_workers)
      .def_ro("forward_seconds", &StepStatistics::forward_seconds)
      .def_ro("update_seconds", &StepStatistics::update_seconds);
  nb::class_<StepStatistics::Table> table(statistics, "Table", R"(The same of one table.

>>> table = embertable.TableConfig(8, 4, name="films")
>>> embedding = embertable.Embedding(embertable.FeatureConfig(table), embertable.SGD(0.1), embertable.EngineStrategy(threads=1))
>>> embedding.enqueue(np.array([1, 1]))
>>> embedding.apply_gradients(embedding.dequeue())
>>> embedding.last_step.tables[0].unique_rows
1)");
  using Counts = std::array<std::int64_t, 7>;
  bind_copies<StepStatistics::Table>(
      table,
      [](const StepStatistics::Table& self) {
        return nb::make_tuple(Counts{self.entries, self.unique_rows, self.rows_touched,
                                     self.empty_rows, self.dropped_ids, self.truncated_entries,
                                     self.buckets});
      },
      [](const nb::tuple& state) {
        const auto counts = nb::cast<Counts>(state[0]);
        return StepStatistics::Table{.entries = counts[0],
                                     .unique_rows = counts[1],
                                     .rows_touched = counts[2],
                                     .empty_rows = counts[3],
                                     .dropped_ids = counts[4],
                                     .truncated_entries = counts[5],
                                     .buckets = counts[6]};
      });
  table.def_ro("entries", &StepStatistics::Table::entries, "Ids looked up, all replicas.")
      .def_ro("unique_rows", &StepStatistics::Table::unique_rows,
              "Rows updated; 0 after an inference batch.")
      .def_ro("dropped_ids", &StepStatistics::Table::dropped_ids)
      .def_ro("truncated_entries", &StepStatistics::Table::truncated_entries);
}

}  // namespace

void bind_reports(nb::module_& module) {
  bind_table_info(module);
  bind_memory(module);
  bind_statistics(module);
}

void bind_reports_of(nb::class_<Engine>& type) {
  bind_description(type);
  type.def_prop_ro(
      "tables",
      [](Engine& self) { return self.ask([](const Embedding& e) { return e.tables(); }); },
      "In table order: first occurrence in the flattened features.");
  type.def(
      "memory",
      [](Engine& self) { return self.ask([](const Embedding& e) { return e.memory().entries; }); },
      R"(Gives the bytes that the engine holds, a MemoryEntry for each table, slot and the scratch memory.

>>> table = embertable.TableConfig(8, 4, name="films")
>>> embedding = embertable.Embedding(embertable.FeatureConfig(table), embertable.Adagrad(0.1))
>>> embedding.build()
>>> [entry.name for entry in embedding.memory()]
['films', 'scratch'])");
  type.def_prop_ro(
      "last_step",
      [](Engine& self) { return self.ask([](const Embedding& e) { return e.last_step(); }); },
      "What the last step did, by table.");
}

}  // namespace embertable::python
