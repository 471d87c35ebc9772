#include "bench/others/checkpoint.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <vector>

#include "bench/machine/machine.h"
#include "bench/machine/timing.h"
#include "bench/others/plain_files.h"
#include "embertable/embertable.h"

namespace embertable::bench {
namespace {

namespace fs = std::filesystem;

constexpr std::int32_t kCheckpointDim = 64;
constexpr double kGiB = 1 << 30;
constexpr std::int64_t kRowBytes = 2 * kCheckpointDim * static_cast<std::int64_t>(sizeof(float));

std::int64_t rows_of(const CheckpointBenchOptions& options) {
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(options.gib * kGiB) / kRowBytes);
}

Embedding make_engine(std::int64_t rows, int threads, const Initializer& initializer) {
  const TablePtr table = make_table({.vocabulary_size = rows,
                                     .dim = kCheckpointDim,
                                     .initializer = initializer,
                                     .optimizer = {},
                                     .combiner = Combiner::kSum,
                                     .name = "table"});
  StrategyOptions strategy;
  strategy.executor = make_thread_pool(threads);
  FeatureConfig feature;
  feature.table = table;
  return Embedding(Nested<FeatureConfig>(feature), Optimizer("adagrad", 0.1),
                   make_strategy(strategy));
}

std::int64_t file_bytes(const fs::path& directory) {
  std::int64_t bytes = 0;
  for (const auto& entry : fs::directory_iterator(directory))
    bytes += static_cast<std::int64_t>(entry.file_size());
  return bytes;
}

/// Collects passes of a plain lane and of ours; the order alternates.
class Turns {
 public:
  void run(int repetition, const std::function<double()>& plain,
           const std::function<double()>& ours) {
    if (repetition % 2 == 1) ours_.push_back(ours());
    plain_.push_back(plain());
    if (repetition % 2 == 0) ours_.push_back(ours());
  }
  CheckpointSeconds medians() const { return {median(plain_), median(ours_)}; }

 private:
  std::vector<double> plain_, ours_;
};

class CheckpointBench {
 public:
  explicit CheckpointBench(const CheckpointBenchOptions& options)
      : options_(options),
        directory_(options.directory /
                   ("embertable-bench-" + std::to_string(static_cast<long>(::getpid())))),
        rows_(rows_of(options)),
        engine_(make_engine(rows_, options.threads, Initializer::uniform(-1, 1))) {
    fs::create_directory(directory_);
    engine_.build(1);
    digest_ = engine_.digest();
  }
  ~CheckpointBench() {
    std::error_code ignored;
    fs::remove_all(directory_, ignored);
  }
  CheckpointBench(const CheckpointBench&) = delete;
  CheckpointBench& operator=(const CheckpointBench&) = delete;

  CheckpointResult run() {
    CheckpointResult result{
        .rows = rows_, .threads = options_.threads, .repetitions = options_.repetitions};
    result.bytes = file_bytes(engine_.save(run_directory()));
    const OtherLoad load;
    Turns save, cold, warm;
    std::vector<double> reused;
    for (int i = 0; i < options_.repetitions; ++i) {
      save.run(
          i, [&] { return write(result.bytes); }, [&] { return this->save(); });
      cold.run(
          i, [&] { return read(true); }, [&] { return restore(true); });
      warm.run(
          i, [&] { return read(false); }, [&] { return restore(false); });
      reused.push_back(
          seconds_of([&] { read_plain(plain_file(), options_.threads, ReadInto::kReusedBuffer); }));
    }
    result.reused_buffer = median(reused);
    result.save = save.medians();
    result.restore_cold = cold.medians();
    result.restore_warm = warm.medians();
    result.other_load = load.share();
    for (const MemoryReport::Entry& entry : engine_.memory().entries)
      if (entry.name == "table") result.table_bytes = entry.bytes;
    result.peak_bytes = peak_of_a_restore();
    return result;
  }

 private:
  fs::path plain_file() const { return directory_ / "plain"; }
  fs::path run_directory() const { return directory_ / "run"; }

  double write(std::int64_t bytes) {
    fs::remove(plain_file());
    ::sync();
    return seconds_of([&] { write_plain(plain_file(), bytes); });
  }
  double save() {
    fs::remove_all(run_directory());
    ::sync();
    return seconds_of([&] { engine_.save(run_directory()); });
  }
  double read(bool cold) {
    if (cold) drop_cache(plain_file());
    return seconds_of([&] { read_plain(plain_file(), options_.threads, ReadInto::kNewMemory); });
  }
  double restore(bool cold) {
    if (cold) drop_cache(run_directory());
    Embedding fresh = make_engine(rows_, options_.threads, Initializer::zeros());
    const double seconds = seconds_of([&] { fresh.restore(run_directory()); });
    if (!compared_) {
      fresh.build(1);
      if (fresh.digest() != digest_)
        throw std::runtime_error("checkpoint: other values came back than were saved");
      compared_ = true;
    }
    return seconds;
  }

  /// Measures a restore in a process of its own.
  std::int64_t peak_of_a_restore() const {
    const std::string run = run_directory();
    std::vector<std::string> words = {"embertable-bench",
                                      "checkpoint",
                                      "--gib",
                                      fmt::format("{}", options_.gib),
                                      "--threads",
                                      std::to_string(options_.threads),
                                      "--restore-only",
                                      run};
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    const std::string told = directory_ / "peak";
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, told.c_str(), O_WRONLY | O_CREAT,
                                       0666);
    pid_t child = 0;
    int status =
        ::posix_spawn(&child, "/proc/self/exe", &actions, nullptr, arguments.data(), environ);
    ::posix_spawn_file_actions_destroy(&actions);
    std::int64_t peak = 0;
    if (status != 0 || ::waitpid(child, &status, 0) != child || status != 0 ||
        !(std::ifstream(told) >> peak))
      throw std::runtime_error("checkpoint: the process that restores failed");
    return peak;
  }

  const CheckpointBenchOptions options_;
  const fs::path directory_;
  const std::int64_t rows_;
  Embedding engine_;
  std::string digest_;
  bool compared_ = false;
};

std::string line(const char* name, const CheckpointSeconds& seconds, double gib) {
  return fmt::format("  {:<14} {:>10.2f} {:>10.2f} {:>8.2f}\n", name, gib / seconds.ours,
                     gib / seconds.plain, seconds.plain / seconds.ours);
}

}  // namespace

CheckpointResult run_checkpoint_bench(const CheckpointBenchOptions& options) {
  return CheckpointBench(options).run();
}

void restore_once(const fs::path& run, const CheckpointBenchOptions& options) {
  make_engine(rows_of(options), options.threads, Initializer::zeros()).restore(run);
  std::ifstream status("/proc/self/status");  // getrusage would count the parent process too
  for (std::string text; std::getline(status, text);)
    if (text.starts_with("VmHWM:")) std::printf("%lld\n", std::stoll(text.substr(6)) * 1024);
}

std::string to_text(const CheckpointResult& result) {
  const double gib = static_cast<double>(result.bytes) / kGiB;
  std::string text = fmt::format(
      "checkpoint: {} rows x {} with Adagrad, {:.2f} GiB of files, {} threads, median of {}\n",
      result.rows, kCheckpointDim, gib, result.threads, result.repetitions);
  text += other_load_line(result.other_load);
  text += fmt::format("  {:<14} {:>10} {:>10} {:>8}\n", "", "GiB/s", "plain file", "of plain");
  text += line("save", result.save, gib);
  text += line("restore, cold", result.restore_cold, gib);
  text += line("restore, warm", result.restore_warm, gib);
  text += fmt::format(
      "  plain files are read into new memory, as tables are; read into a reused buffer and "
      "dropped, "
      "warm: {:.2f} GiB/s\n",
      gib / result.reused_buffer);
  text += fmt::format(
      "  a process that restores holds {:.0f} MiB at most, {:.0f} MiB beyond its tables\n",
      static_cast<double>(result.peak_bytes) / (1 << 20),
      static_cast<double>(result.peak_bytes - result.table_bytes) / (1 << 20));
  return text;
}

std::string to_json(const CheckpointResult& result) {
  const double gib = static_cast<double>(result.bytes) / kGiB;
  nlohmann::ordered_json json;
  json["workload"] = "checkpoint";
  json["rows"] = result.rows;
  json["dim"] = kCheckpointDim;
  json["bytes"] = result.bytes;
  json["threads"] = result.threads;
  json["repetitions"] = result.repetitions;
  json["other_load"] = result.other_load;
  const auto add = [&](const std::string& name, const CheckpointSeconds& seconds) {
    json[name + "_seconds"] = seconds.ours;
    json[name + "_gib_per_second"] = gib / seconds.ours;
    json[name + "_plain_seconds"] = seconds.plain;
    json[name + "_of_plain"] = seconds.plain / seconds.ours;
  };
  add("save", result.save);
  add("restore_cold", result.restore_cold);
  add("restore_warm", result.restore_warm);
  json["plain_into_reused_buffer_seconds"] = result.reused_buffer;
  json["table_bytes"] = result.table_bytes;
  json["peak_bytes"] = result.peak_bytes;
  return json.dump();
}

}  // namespace embertable::bench
