// Binds jobs: what embertable.train calls, and the whole command line.
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "apps/cli/command_line.h"
#include "apps/cli/sweep_report.h"
#include "apps/cli/train_report.h"
#include "apps/doctor/findings.h"
#include "apps/jobs/run/ranks.h"
#include "apps/jobs/run/train.h"
#include "apps/jobs/spec/job.h"
#include "apps/jobs/sweep/sweep.h"
#include "base/interruption.h"
#include "python/src/arguments.h"
#include "python/src/bindings.h"
#include "python/src/callback.h"
#include "python/src/exchange.h"
#include "python/src/gil.h"
#include "python/src/runs.h"
#include "python/src/text_caster.h"

namespace embertable::python {
namespace {

using Path = std::filesystem::path;

/// Asks a Python function whether to stop, up to fifty times a second.
class AskToStop {
 public:
  explicit AskToStop(CallbackPtr stop) : stop_(std::move(stop)) {}

  bool operator()() {
    const auto now = std::chrono::steady_clock::now();
    if (stops_ || now < next_) return stops_;
    next_ = now + std::chrono::milliseconds(20);
    return with_gil([&] {
      if (PyErr_CheckSignals() != 0) throw nb::python_error();  // runs the handlers of signals
      return stops_ = nb::cast<bool>((*stop_)());
    });
  }

 private:
  CallbackPtr stop_;
  std::chrono::steady_clock::time_point next_;
  bool stops_ = false;
};

/// Returns the keys of the object that the command prints when a run is done, or interrupted.
nb::dict dict_of(const jobs::TrainReport& report) {
  nb::dict done;
  done["interrupted"] = report.interrupted;
  done["steps"] = report.steps;
  done["seconds"] = report.seconds;
  nb::dict parts;
  parts["fill"] = report.fill_seconds;
  parts["engine"] = report.engine_seconds;
  parts["gradients"] = report.gradient_seconds;
  done["seconds_in"] = parts;
  done["samples_per_second"] = report.samples_per_second;
  if (!report.waited_seconds.empty()) {
    done["slowest_host"] = report.slowest_host();
    done["waited_seconds"] = nb::cast(report.waited_seconds);
  }
  if (!report.saved.empty()) done["saved"] = decoded(report.saved.string());
  if (report.interrupted) return done;
  done[report.measured_part.c_str()] = measures_dict(report.measures);
  done["digest"] = report.digest;
  if (report.best_epoch > 0) done["best_epoch"] = report.best_epoch;
  return done;
}

/// Trains a job, and passes what the command prints with --json to a Python function, as texts.
jobs::TrainReport train_with(const jobs::Job& job, const jobs::TrainOptions& options,
                             const CallbackPtr& told) {
  jobs::TrainObserver silent;
  if (!told) return jobs::train(job, options, silent);
  tools::JsonReport events(
      job, options, [&](const std::string& event) { with_gil([&] { (*told)(decoded(event)); }); });
  return jobs::train(job, options, events);
}

/// Returns changes, each of which is named in errors as the package takes it.
std::vector<jobs::Change> changes_of(const std::vector<std::string>& texts) {
  std::vector<jobs::Change> changes;
  for (const std::string& text : texts)
    changes.emplace_back(text, "set[\"" + text.substr(0, text.find('=')) + "\"]");
  return changes;
}

nb::dict train_job(const Path& path, nb::handle text, const std::vector<std::string>& changes,
                   const Path& out, bool resume, bool overwrite, const Path& data,
                   nb::handle threads, nb::handle skip_bad, nb::handle exchange,
                   nb::handle deadline, nb::handle stop, nb::handle progress) {
  jobs::TrainOptions options;
  options.data_root = data.string();
  options.out = out.string();
  options.resume = resume;
  options.overwrite = overwrite;
  if (resume && out.empty())
    throw ValueError("train: out must be a directory where resume is true, got none");
  options.threads = threads_of(threads, "train: threads");
  options.skip_bad = skip_bad_of(skip_bad, "train: skip_bad");
  options.stop = AskToStop(make_callback(stop, "train: stop"));
  const bool finds = exchange.is_none();
  MpiOptions mpi;
  if (!deadline.is_none()) mpi.deadline_seconds = number(deadline, "train: deadline");
  if (!(mpi.deadline_seconds > 0))
    throw ValueError("train: deadline must be above 0, got " +
                     std::to_string(mpi.deadline_seconds));
  if (!finds) options.exchange = chosen_exchange(exchange, deadline, "train");
  const CallbackPtr told =
      progress.is_none() ? nullptr : make_callback(progress, "train: progress");
  const bool is_text = !text.is_none();
  const std::string job_text = is_text ? utf8(text, "train: job") : "";
  jobs::TrainReport report;
  {
    const WithoutGil nogil;
    const Interruption interruption(raise_signals);
    if (finds) options.exchange = jobs::find_others(mpi);
    const auto parse = [&] {
      return is_text ? jobs::parse_job(job_text, path.string(), changes_of(changes))
                     : jobs::read_job(path.string(), changes_of(changes));
    };
    // What one process finds wrong with its job is an error on all.
    if (options.exchange && options.exchange->hosts() > 1) {
      jobs::Ranks ranks(options.exchange, nullptr);
      const jobs::Job job = ranks.together(parse);
      report = train_with(job, options, told);
    } else {
      report = train_with(parse(), options, told);
    }
  }
  return dict_of(report);
}

/// Makes the exchange of torchrun's processes. What cannot be made is an error in one line.
std::shared_ptr<Exchange> made_by(const CallbackPtr& connect, double deadline) {
  return with_gil([&] { return exchange_of((*connect)(deadline)); });
}

std::vector<std::pair<std::string, std::string>> packages_of(const CallbackPtr& packages) {
  return with_gil(
      [&] { return nb::cast<std::vector<std::pair<std::string, std::string>>>((*packages)()); });
}

/// Trains a job with many settings. `keys`: as after --grid. Returns what the command prints with
/// --json at its end, as texts, and whether it was interrupted.
nb::dict sweep_job(const Path& path, nb::handle text, const std::vector<std::string>& changes,
                   const std::vector<std::string>& keys, nb::handle random, nb::handle seed,
                   const Path& out, bool resume, bool overwrite, const Path& data,
                   nb::handle threads, nb::handle runs_at_once, nb::handle skip_bad, bool keep_runs,
                   bool tests_best, const std::string& data_stamp, nb::handle stop,
                   nb::handle progress) {
  jobs::SweepOptions options;
  options.data_stamp = data_stamp;
  options.data_root = data.string();
  options.out = out.string();
  options.resume = resume;
  options.overwrite = overwrite;
  options.keep_runs = keep_runs;
  options.tests_best = tests_best;
  options.threads = threads_of(threads, "sweep: threads");
  options.runs_at_once = threads_of(runs_at_once, "sweep: jobs");
  options.skip_bad = skip_bad_of(skip_bad, "sweep: skip_bad");
  options.stop = AskToStop(make_callback(stop, "sweep: stop"));
  const std::int64_t draws = random.is_none() ? 0 : integer(random, "sweep: random");
  if (!random.is_none() && draws < 1)
    throw ValueError("sweep: random must be at least 1, got " + std::to_string(draws));
  const std::uint64_t chance = seed_of(seed);
  const CallbackPtr told =
      progress.is_none() ? nullptr : make_callback(progress, "sweep: progress");
  const bool is_text = !text.is_none();
  const std::string job_text = is_text ? utf8(text, "sweep: job") : "";
  std::vector<std::string> events;
  bool interrupted = false;
  {
    const WithoutGil nogil;
    const Interruption interruption(raise_signals);
    std::vector<jobs::SweptKey> swept;
    for (const std::string& key : keys) swept.push_back(jobs::SweptKey::parse(key));
    const std::vector<jobs::SweepSetting> settings =
        draws > 0 ? jobs::random_settings(swept, draws, chance) : jobs::grid_of(swept);
    tools::SweepJson report([&](const std::string& event) {
      if (event.starts_with(R"({"event":"ranked")") || event.starts_with(R"({"event":"done")"))
        events.push_back(event);
      if (!told) return;
      with_gil([&] { (*told)(decoded(event)); });
    });
    const jobs::JobMaker job_with = [&](const std::vector<jobs::Change>& more) {
      std::vector<jobs::Change> all = changes_of(changes);
      all.insert(all.end(), more.begin(), more.end());
      return is_text ? jobs::parse_job(job_text, path.string(), all)
                     : jobs::read_job(path.string(), all);
    };
    interrupted = jobs::sweep(job_with, settings, options, report).interrupted;
  }
  nb::dict done;
  done["interrupted"] = interrupted;
  nb::list texts;
  for (const std::string& event : events) texts.append(decoded(event));
  done["events"] = texts;
  return done;
}

int run_command(const std::vector<std::string>& program, const std::vector<std::string>& words,
                nb::handle torch, nb::handle packages) {
  const CallbackPtr connect = make_callback(torch, "torch");
  const CallbackPtr installed = make_callback(packages, "packages");
  tools::Invocation invocation{.program = program, .words = words};
  invocation.packages = [installed] { return packages_of(installed); };
  invocation.torch = [connect](double deadline) { return made_by(connect, deadline); };
  const WithoutGil nogil;
  const int status = tools::run_command_line(invocation);
  std::fflush(nullptr);
  return status;
}

/// Returns (subject, found, advice) of each finding.
std::vector<std::tuple<std::string, std::string, std::string>> examine(const Path& folder) {
  std::vector<std::tuple<std::string, std::string, std::string>> findings;
  const WithoutGil nogil;
  for (const doctor::Finding& finding : doctor::examine(folder))
    findings.emplace_back(finding.subject, finding.found, finding.advice);
  return findings;
}

}  // namespace

void bind_jobs(nb::module_& module) {
  module.def("_examine", examine, nb::arg("folder"));
  module.def("_train_job", train_job, nb::arg("path"), nb::arg("text").none(), nb::arg("changes"),
             nb::arg("out"), nb::arg("resume"), nb::arg("overwrite"), nb::arg("data"),
             nb::arg("threads"), nb::arg("skip_bad"), nb::arg("exchange").none(),
             nb::arg("deadline").none(), nb::arg("stop"), nb::arg("progress").none());
  module.def("_sweep_job", sweep_job, nb::arg("path"), nb::arg("text").none(), nb::arg("changes"),
             nb::arg("keys"), nb::arg("random").none(), nb::arg("seed"), nb::arg("out"),
             nb::arg("resume"), nb::arg("overwrite"), nb::arg("data"), nb::arg("threads"),
             nb::arg("runs_at_once"), nb::arg("skip_bad"), nb::arg("keep_runs"),
             nb::arg("tests_best"), nb::arg("data_stamp"), nb::arg("stop"),
             nb::arg("progress").none());
  module.def("_run_command", run_command);
}

}  // namespace embertable::python
