// Binds what is done with a saved run of a job: embertable.evaluate, predict and neighbors.
#include "python/src/runs.h"

#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/vector.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "apps/convert/saved_model.h"
#include "apps/jobs/run/best_epoch.h"
#include "apps/jobs/run/evaluate.h"
#include "apps/jobs/run/neighbors.h"
#include "apps/jobs/run/predict.h"
#include "base/interruption.h"
#include "embertable/errors.h"
#include "python/src/arguments.h"
#include "python/src/arrays.h"
#include "python/src/bindings.h"
#include "python/src/gil.h"
#include "python/src/text_caster.h"

namespace embertable::python {
namespace {

using Path = std::filesystem::path;

/// Returns the best epoch of a run that keeps one, as the command line does.
Path best_of(const Path& run) {
  const std::optional<jobs::KeptEpoch> best = jobs::best_of_run(run);
  return best ? best->run : run;
}

/// Returns `best_of(run)`, and warns of steps there that are skipped.
Path taken_of(const char* call, const Path& run) {
  const Path taken = [&] {
    const WithoutGil nogil;
    return best_of(run);
  }();
  warn_of_skipped(call, taken);
  return taken;
}

jobs::Part part_of_name(const std::string& name) {
  static const std::map<std::string, jobs::Part> kParts = {{"test", jobs::Part::kTest},
                                                           {"validation", jobs::Part::kValidation},
                                                           {"training", jobs::Part::kTraining}};
  const auto found = kParts.find(name);
  if (found == kParts.end())
    throw ValueError("evaluate: part must be 'test', 'validation' or 'training', got '" + name +
                     "'");
  return found->second;
}

nb::dict evaluate_run(const Path& run, nb::handle part, const Path& data, nb::handle threads,
                      nb::handle skip_bad) {
  jobs::EvaluateOptions options;
  if (!part.is_none()) options.part = part_of_name(utf8(part, "evaluate: part"));
  if (!data.empty()) options.data_root = data.string();
  options.threads = threads_of(threads, "evaluate: threads");
  if (!skip_bad.is_none()) options.skip_bad = skip_bad_of(skip_bad, "evaluate: skip_bad");
  std::optional<jobs::Evaluation> evaluation;
  {
    const WithoutGil nogil;
    const Interruption interruption(raise_signals);
    evaluation = jobs::evaluate(best_of(run), options);
  }
  nb::dict all;
  all["directory"] = decoded(evaluation->directory.string());
  nb::list skipped;
  for (const std::string& why : evaluation->skipped) skipped.append(decoded(why));
  all["skipped"] = skipped;
  all["step"] = evaluation->step;
  all["part"] = to_string(evaluation->part).c_str();
  all["samples"] = evaluation->samples;
  all.update(measures_dict(evaluation->measures));
  return all;
}

/// Collects lines of scores by column.
class Columns final : public jobs::ScoreSink {
 public:
  void begin(const std::vector<jobs::ScoreColumn>& columns) override {
    columns_ = columns;
    integers_.resize(columns.size());
    floats_.resize(columns.size());
    texts_.resize(columns.size());
  }

  void line(std::span<const jobs::ScoreCell> cells) override {
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const auto* integer = std::get_if<std::int64_t>(&cells[i]);
      if (integer != nullptr && !texts_[i].empty()) {
        texts_[i].push_back(std::to_string(*integer));
      } else if (integer != nullptr) {
        integers_[i].push_back(*integer);
      } else if (const auto* number = std::get_if<float>(&cells[i])) {
        floats_[i].push_back(*number);
      } else {
        // A column of keys may have an empty one among whole numbers.
        for (const std::int64_t before : integers_[i]) texts_[i].push_back(std::to_string(before));
        integers_[i].clear();
        texts_[i].emplace_back(std::get<std::string_view>(cells[i]));
      }
    }
  }

  /// Returns an array for each column, or a list of texts.
  nb::dict by_name() const {
    nb::dict columns;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      nb::object column;
      if (!texts_[i].empty()) {
        nb::list texts;
        for (const std::string& text : texts_[i]) texts.append(decoded(text));
        column = std::move(texts);
      } else if (columns_[i].score) {
        column = array_of(floats_[i], "float32");
      } else {
        column = array_of(integers_[i], "int64");
      }
      columns[decoded(columns_[i].name)] = column;
    }
    return columns;
  }

 private:
  template <class T>
  static nb::object array_of(const std::vector<T>& values, const char* dtype) {
    const nb::bytes copy(values.data(), values.size() * sizeof(T));
    return numpy().attr("frombuffer")(copy, dtype).attr("copy")();
  }

  std::vector<jobs::ScoreColumn> columns_;
  std::vector<std::vector<std::int64_t>> integers_;  ///< by column, as the following
  std::vector<std::vector<float>> floats_;
  std::vector<std::vector<std::string>> texts_;
};

nb::dict predict_rows(const Path& run, const Path& rows, nb::handle k, bool has_label,
                      nb::handle threads, nb::handle skip_bad, bool ids,
                      const std::vector<std::string>& copy) {
  jobs::PredictOptions options;
  options.rows.path = rows.string();
  options.rows.names = {.no_label = "has_label=False", .copy = "copy", .no_ids = "ids=False"};
  options.rows.has_label = has_label;
  options.rows.skip_bad = skip_bad_of(skip_bad, "predict: skip_bad");
  options.rows.copy_ids = ids;
  options.rows.copy = copy;
  if (!k.is_none()) {
    options.rows.items = integer(k, "predict: k");
    if (*options.rows.items < 1 || *options.rows.items > jobs::NewRows::kMostItems)
      throw ValueError("predict: k must be from 1 to " + std::to_string(jobs::NewRows::kMostItems) +
                       ", got " + std::to_string(*options.rows.items));
  }
  options.threads = threads_of(threads, "predict: threads");
  const Path taken = taken_of("predict", run);
  Columns columns;
  {
    const WithoutGil nogil;
    const Interruption interruption(raise_signals);
    jobs::predict(taken, options, columns);
  }
  return columns.by_name();
}

nb::list nearest(const Path& run, const std::string& table, nb::handle key, nb::handle name,
                 nb::handle row, nb::handle k) {
  const int given = !key.is_none() + !name.is_none() + !row.is_none();
  if (given != 1)
    throw ValueError("neighbors: one of key, name and row must be given, got " +
                     std::to_string(given));
  const std::int64_t count = integer(k, "neighbors: k");
  if (count < 1) throw ValueError("neighbors: k must be >= 1, got " + std::to_string(count));
  const std::string wanted_key = key.is_none() ? ""
                                 : nb::isinstance<nb::str>(key)
                                     ? utf8(key, "neighbors: key")
                                     : std::to_string(integer(key, "neighbors: key"));
  const std::string wanted_name = name.is_none() ? "" : utf8(name, "neighbors: name");
  std::int64_t wanted = row.is_none() ? -1 : integer(row, "neighbors: row");
  const Path taken = taken_of("neighbors", run);
  std::optional<jobs::SavedTableRows> rows;
  std::vector<jobs::Neighbor> found;
  {
    const bool by_key = !key.is_none(), by_name = !name.is_none();
    const WithoutGil nogil;
    const Interruption interruption(raise_signals);
    rows.emplace(taken, table);
    if (by_key) wanted = rows->row_of_key(wanted_key);
    if (by_name) wanted = rows->row_of_name(wanted_name);
    rows->check_row(wanted);
    found = jobs::nearest_rows(*rows, wanted, count);
  }
  nb::list all;
  for (const jobs::Neighbor& neighbor : found) {
    nb::dict one;
    one["row"] = neighbor.row;
    if (rows->any()) one["key"] = decoded(rows->key(neighbor.row));
    if (rows->has_names()) one["name"] = decoded(rows->display_name(neighbor.row));
    one["cosine"] = neighbor.cosine;
    all.append(one);
  }
  return all;
}

}  // namespace

nb::dict measures_dict(const jobs::Measures& measures) {
  nb::dict all;
  for (const jobs::Measure& measure : measures) {
    if (std::isnan(measure.value)) {
      all[measure.name.c_str()] = nb::none();  // the command's JSON has null
    } else {
      all[measure.name.c_str()] = measure.value;
    }
  }
  return all;
}

jobs::SkipBad skip_bad_of(nb::handle given, const char* what) {
  if (nb::isinstance<nb::str>(given)) {
    try {
      return jobs::SkipBad::parse(utf8(given, what));
    } catch (const ValueError& error) {
      throw ValueError(std::string(what) + " " + error.what());
    }
  }
  const std::int64_t most = integer(given, what);
  if (most < 0)
    throw ValueError(std::string(what) + " must be >= 0, or a share as '1%', got " +
                     std::to_string(most));
  return most;
}

void warn_of_skipped(const char* call, const Path& run) {
  const std::vector<std::string> skipped = [&] {
    const WithoutGil nogil;
    return jobs::skipped_steps(run);
  }();
  for (const std::string& why : skipped)
    nb::module_::import_("warnings")
        .attr("warn")(decoded(std::string(call) + ": takes an older step; skipped: " + why));
}

std::int32_t threads_of(nb::handle given, const char* what) {
  constexpr std::int32_t kMost = 1024;  // on the command line too
  const std::int32_t number = integer32(given, what);
  if (number >= 0 && number <= kMost) return number;
  throw ValueError(std::string(what) + " must be 0.." + std::to_string(kMost) + ", got " +
                   std::to_string(number));
}

void bind_runs(nb::module_& module) {
  module.def("_evaluate_run", evaluate_run, nb::arg("run"), nb::arg("part").none(), nb::arg("data"),
             nb::arg("threads"), nb::arg("skip_bad").none());
  module.def("_predict_rows", predict_rows, nb::arg("run"), nb::arg("rows"), nb::arg("k").none(),
             nb::arg("has_label"), nb::arg("threads"), nb::arg("skip_bad"), nb::arg("ids"),
             nb::arg("copy"));
  module.def("neighbors", nearest, nb::arg("run"), nb::arg("table"), nb::arg("key") = nb::none(),
             nb::kw_only(), nb::arg("name") = nb::none(), nb::arg("row") = nb::none(),
             nb::arg("k") = 10,
             "Gives the k rows of a saved table that are nearest to one by cosine, nearest first: "
             "a list of dicts with row,\ncosine and, where there are any, key and name. The one is "
             "given by its key, its name (or a part of it that no\nother name contains) or its "
             "row. run: the directory of a run or of a step. Same as `embertable neighbors`.\n\n"
             "Raises KeyError for an unknown table, key or name, ValueError, OSError.\n"
             "\n"
             ">>> embertable.neighbors(directory + \"/books\", \"item\", \"b\", k=1)[0][\"row\"]  "
             "# doctest: +SKIP\n"
             "2");
}

}  // namespace embertable::python
