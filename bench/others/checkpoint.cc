// embertable-bench checkpoint saves and restores a table of dim 64 with Adagrad, whose slots are
// between the rows, alternating with plain files of the same size.
#include <fcntl.h>
#include <fmt/core.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/commands/commands.h"
#include "bench/commands/report.h"
#include "bench/machine/machine.h"
#include "bench/machine/timing.h"
#include "bench/others/files.h"
#include "embertable/embertable.h"

namespace embertable::bench {
namespace {

namespace fs = std::filesystem;

constexpr std::int32_t kCheckpointDim = 64;
constexpr double kGiB = 1 << 30;
constexpr std::int64_t kRowBytes = 2 * kCheckpointDim * static_cast<std::int64_t>(sizeof(float));

struct CheckpointBenchOptions {
  double gib = 1;  ///< rows and slots
  fs::path directory = ".";
  std::string restored;  ///< restore this run alone, in the process whose memory is measured

  std::int64_t rows() const {
    return std::max<std::int64_t>(1, static_cast<std::int64_t>(gib * kGiB) / kRowBytes);
  }
};

Embedding make_engine(std::int64_t rows, int threads, const Initializer& initializer) {
  const TablePtr table = make_table({.vocabulary_size = rows,
                                     .dim = kCheckpointDim,
                                     .initializer = initializer,
                                     .optimizer = {},
                                     .combiner = Combiner::kSum,
                                     .name = "table"});
  FeatureConfig feature;
  feature.table = table;
  return Embedding(Nested<FeatureConfig>(feature), Optimizer("adagrad", 0.1),
                   make_strategy({.executor = make_thread_pool(threads)}));
}

std::int64_t file_bytes(const fs::path& directory) {
  std::int64_t bytes = 0;
  for (const auto& entry : fs::directory_iterator(directory))
    bytes += static_cast<std::int64_t>(entry.file_size());
  return bytes;
}

/// Restores the table of these options, and prints the peak number of bytes that this process held.
void restore_once(const CheckpointBenchOptions& options, int threads) {
  make_engine(options.rows(), threads, Initializer::zeros()).restore(options.restored);
  std::ifstream status("/proc/self/status");  // getrusage would count the parent process too
  for (std::string text; std::getline(status, text);)
    if (text.starts_with("VmHWM:")) std::printf("%lld\n", std::stoll(text.substr(6)) * 1024);
}

/// Returns what restore_once prints, in a process of its own.
std::int64_t peak_of_a_restore(const CheckpointBenchOptions& options, int threads,
                               const fs::path& run, const fs::path& told) {
  const std::string gib = fmt::format("--gib={}", options.gib),
                    count = fmt::format("--threads={}", threads),
                    restored = "--restore-only=" + run.string();
  const char* const words[] = {"embertable-bench", "checkpoint",     gib.c_str(),
                               count.c_str(),      restored.c_str(), nullptr};
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, told.c_str(), O_WRONLY | O_CREAT,
                                     0666);
  pid_t child = 0;
  int status = ::posix_spawn(&child, "/proc/self/exe", &actions, nullptr, const_cast<char**>(words),
                             environ);
  ::posix_spawn_file_actions_destroy(&actions);
  std::int64_t peak = 0;
  if (status != 0 || ::waitpid(child, &status, 0) != child || status != 0 ||
      !(std::ifstream(told) >> peak))
    throw std::runtime_error("checkpoint: the process that restores failed");
  return peak;
}

/// Passes over plain files and ours, which alternate; the order of the two does, too.
class Turns {
 public:
  Turns(const char* key, const char* name) : key_(key), name_(name) {}

  template <class Plain, class Ours>
  void run(int repetition, const Plain& plain, const Ours& ours) {
    if (repetition % 2 == 1) ours_.push_back(ours());
    plain_.push_back(plain());
    if (repetition % 2 == 0) ours_.push_back(ours());
  }

  /// Adds medians for `bytes` bytes.
  void add_to(Json& figures, std::string& text, double bytes) const {
    const double ours = median(ours_), plain = median(plain_), gib = bytes / kGiB;
    const std::string key = key_;
    figures[key + "_seconds"] = ours;
    figures[key + "_gib_per_second"] = gib / ours;
    figures[key + "_plain_seconds"] = plain;
    figures[key + "_of_plain"] = plain / ours;
    text += fmt::format("  {:<14} {:>10.2f} {:>10.2f} {:>8.2f}\n", name_, gib / ours, gib / plain,
                        plain / ours);
  }

 private:
  const char *key_, *name_;
  std::vector<double> plain_, ours_;
};

/// Plain files are read into new memory, and each restore is into a new object. Throws
/// std::runtime_error if the restored values differ.
void run_checkpoint(const CheckpointBenchOptions& options, const CommonOptions& common) {
  const int threads = common.threads;
  const std::int64_t rows = options.rows();
  const ScratchFolder folder(options.directory /
                             ("embertable-bench-" + std::to_string(static_cast<long>(::getpid()))));
  const fs::path plain = folder.path() / "plain", run = folder.path() / "run";
  Embedding engine = make_engine(rows, threads, Initializer::uniform(-1, 1));
  engine.build(1);
  const std::int64_t bytes = file_bytes(engine.save(run));

  const auto write = [&] {
    fs::remove(plain);
    ::sync();
    return seconds_of([&] { write_plain(plain, bytes); });
  };
  const auto save = [&] {
    fs::remove_all(run);
    ::sync();
    return seconds_of([&] { engine.save(run); });
  };
  const auto read = [&] {
    return seconds_of([&] { read_plain(plain, threads, ReadInto::kNewMemory); });
  };
  bool compared = false;
  const auto restore = [&] {
    Embedding fresh = make_engine(rows, threads, Initializer::zeros());
    const double seconds = seconds_of([&] { fresh.restore(run); });
    if (!compared) {
      fresh.build(1);
      if (fresh.digest() != engine.digest())
        throw std::runtime_error("checkpoint: other values came back than were saved");
      compared = true;
    }
    return seconds;
  };
  const auto cold = [&](const fs::path& path, const auto& reader) {
    return [&] {
      drop_cache(path);
      return reader();
    };
  };

  const OtherLoad load;
  Turns saves("save", "save"), colds("restore_cold", "restore, cold"),
      warms("restore_warm", "restore, warm");
  std::vector<double> reused;
  for (int i = 0; i < common.repetitions; ++i) {
    saves.run(i, write, save);
    colds.run(i, cold(plain, read), cold(run, restore));
    warms.run(i, read, restore);
    reused.push_back(seconds_of([&] { read_plain(plain, threads, ReadInto::kReusedBuffer); }));
  }
  const double other_load = load.share(), reused_buffer = median(reused);
  std::int64_t table_bytes = 0;
  for (const MemoryReport::Entry& entry : engine.memory().entries)
    if (entry.name == "table") table_bytes = entry.bytes;
  const std::int64_t peak_bytes = peak_of_a_restore(options, threads, run, folder.path() / "peak");

  Json figures = {{"workload", "checkpoint"}, {"rows", rows},
                  {"dim", kCheckpointDim},    {"bytes", bytes},
                  {"threads", threads},       {"repetitions", common.repetitions},
                  {"other_load", other_load}};
  const auto size = static_cast<double>(bytes);
  std::string text = fmt::format(
      "checkpoint: {} rows x {} with Adagrad, {:.2f} GiB of files, {} threads, median of {}\n{}"
      "  {:<14} {:>10} {:>10} {:>8}\n",
      rows, kCheckpointDim, size / kGiB, threads, common.repetitions, other_load_line(other_load),
      "", "GiB/s", "plain file", "of plain");
  for (const Turns* turns : {&saves, &colds, &warms}) turns->add_to(figures, text, size);
  figures["plain_into_reused_buffer_seconds"] = reused_buffer;
  figures["table_bytes"] = table_bytes;
  figures["peak_bytes"] = peak_bytes;
  text += fmt::format(
      "  plain files are read into new memory, as tables are; read into a reused buffer and "
      "dropped, warm: {:.2f} GiB/s\n"
      "  a process that restores holds {:.0f} MiB at most, {:.0f} MiB beyond its tables\n",
      size / kGiB / reused_buffer, static_cast<double>(peak_bytes) / (1 << 20),
      static_cast<double>(peak_bytes - table_bytes) / (1 << 20));
  print(common.json, figures, text);
}

}  // namespace

Command add_checkpoint(CLI::App& app, CommonOptions& common) {
  CLI::App* command = app.add_subcommand(
      "checkpoint", "Saves and restores a table; rates beside those of plain files");
  auto options = std::make_shared<CheckpointBenchOptions>();
  add_number(*command, "--gib", options->gib, "GiB of rows and slots", 0.001, 4096);
  command->add_option("--dir", options->directory, "Where files are written, and removed")
      ->check(CLI::ExistingDirectory)
      ->capture_default_str();
  command->add_option("--restore-only", options->restored)->group("");
  return CommonAdder(*command, common).threads().repetitions(3).json().runs([options, &common] {
    if (options->restored.empty())
      run_checkpoint(*options, common);
    else
      restore_once(*options, common.threads);
  });
}

}  // namespace embertable::bench
