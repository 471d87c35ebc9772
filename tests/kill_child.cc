// Trains as `embertable train --resume` does, and kills itself in the middle of a save.
//
// kill_child list JOB DATA OUT                     prints every file operation of every save
// kill_child kill JOB DATA OUT SAVE PHASE NTH WHEN kills itself (SIGKILL) in this process' save
// number SAVE (from 0),
//                                                  at its NTH (from 0) operation of PHASE, `before`
//                                                  or `after` it; a write is left half done. Prints
//                                                  "saved STEP" for each save that returns, and
//                                                  "killed" at the end.
//
// A phase is an operation and what it is done to, as in "write data" or "rename step".
#include <fmt/format.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "apps/jobs/run/train.h"
#include "checkpoint/file.h"
#include "checkpoint/run_directory.h"

namespace embertable::checkpoint {

// The linker's --wrap gives the library's calls of local_files to `wrapped`.
FileSystem& real() __asm__("__real__ZN10embertable10checkpoint11local_filesEv");
FileSystem& wrapped() __asm__("__wrap__ZN10embertable10checkpoint11local_filesEv");

namespace {

namespace fs = std::filesystem;

/// Where to be killed; no save number: nowhere, and every operation is printed.
struct Target {
  std::int64_t save = -1;
  std::string phase;
  std::int64_t nth = 0;
  bool after = false;
};

Target target;  // NOLINT: set once by main

[[noreturn]] void die() {
  fmt::print("killed\n");
  std::fflush(stdout);
  std::raise(SIGKILL);
  std::abort();
}

/// Counts the operations of each save, and dies at one. A save ends when the next one makes its
/// directory.
class Counter {
 public:
  /// Does the operation, or a part of it and dies.
  template <class Whole, class Half>
  auto run(const char* operation, const fs::path& path, Whole whole, Half half) {
    const bool hit = is_target(operation, path);
    if (hit && !target.after) {
      half();
      die();
    }
    if constexpr (std::is_void_v<decltype(whole())>) {
      whole();
      if (hit) die();
    } else {
      auto result = whole();
      if (hit) die();
      return result;
    }
  }
  template <class Whole>
  auto run(const char* operation, const fs::path& path, Whole whole) {
    return run(operation, path, whole, [] {});
  }

 private:
  static const char* kind_of(const fs::path& path) {
    const std::string name = path.filename();
    if (is_temporary_name(name) || parse_step_name(name)) return "step";
    if (name == "manifest.json") return "manifest";
    return path.has_extension() ? "data" : "run";
  }

  bool is_target(const char* operation, const fs::path& path) {
    const std::lock_guard lock(mutex_);
    const std::string phase = fmt::format("{} {}", operation, kind_of(path));
    if (phase == "make_directory step") {
      ++save_;
      seen_.clear();
    }
    const std::int64_t nth = seen_[phase]++;
    if (target.save < 0) fmt::print("{}\t{}\n", save_, phase);
    return save_ == target.save && phase == target.phase && nth == target.nth;
  }

  std::mutex mutex_;
  std::int64_t save_ = -1;
  std::map<std::string, std::int64_t> seen_;
};

class KillingFile final : public File {
 public:
  KillingFile(std::unique_ptr<File> file, fs::path path, Counter& counter)
      : file_(std::move(file)), path_(std::move(path)), counter_(counter) {}
  void write(std::span<const std::byte> bytes) override {
    counter_.run(
        "write", path_, [&] { file_->write(bytes); },
        [&] { file_->write(bytes.first(bytes.size() / 2)); });
  }
  std::size_t read(std::int64_t offset, std::span<std::byte> out) const override {
    return file_->read(offset, out);
  }
  std::int64_t size() const override { return file_->size(); }
  void sync() override {
    counter_.run("flush", path_, [&] { file_->sync(); });
  }

 private:
  std::unique_ptr<File> file_;
  fs::path path_;
  Counter& counter_;
};

class KillingDirectory final : public Directory {
 public:
  KillingDirectory(std::unique_ptr<Directory> directory, fs::path path, Counter& counter)
      : directory_(std::move(directory)), path_(std::move(path)), counter_(counter) {}
  std::vector<std::string> list() override { return directory_->list(); }
  std::unique_ptr<Directory> open(const std::string& name) override {
    return wrap(directory_->open(name), name);
  }
  std::unique_ptr<Directory> enter(const std::string& name) override {
    return wrap(directory_->enter(name), name);
  }
  std::unique_ptr<File> open_file(const std::string& name) override {
    return directory_->open_file(name);
  }
  std::unique_ptr<File> create(const std::string& name) override {
    return counter_.run("create", path_ / name, [&] {
      return std::make_unique<KillingFile>(directory_->create(name), path_ / name, counter_);
    });
  }
  void make_directory(const std::string& name) override {
    counter_.run("make_directory", path_ / name, [&] { directory_->make_directory(name); });
  }
  void rename(const std::string& from, const std::string& to) override {
    counter_.run(is_temporary_name(to) ? "discard" : "commit", path_ / from,
                 [&] { directory_->rename(from, to); });
  }
  void remove(const std::string& name) override {
    counter_.run("remove", path_ / name, [&] { directory_->remove(name); });
  }
  void sync() override {
    counter_.run("flush", path_, [&] { directory_->sync(); });
  }
  std::unique_ptr<FileLock> lock(const std::string& name) override {
    return directory_->lock(name);
  }
  std::unique_ptr<FileLock> wait_for_lock(const std::string& name) override {
    return directory_->wait_for_lock(name);
  }

 private:
  std::unique_ptr<Directory> wrap(std::unique_ptr<Directory> inner, const std::string& name) {
    if (!inner) return nullptr;
    return std::make_unique<KillingDirectory>(std::move(inner), path_ / name, counter_);
  }

  std::unique_ptr<Directory> directory_;
  fs::path path_;
  Counter& counter_;
};

class KillingFiles final : public FileSystem {
 public:
  std::unique_ptr<File> create(const fs::path& path) override {
    return counter_.run("create", path, [&] {
      return std::make_unique<KillingFile>(real().create(path), path, counter_);
    });
  }
  std::unique_ptr<File> open(const fs::path& path) override { return real().open(path); }
  std::unique_ptr<Directory> open_directory(const fs::path& path) override {
    return std::make_unique<KillingDirectory>(real().open_directory(path), path, counter_);
  }
  std::optional<Entry> stat(const fs::path& path) override { return real().stat(path); }
  std::vector<std::string> list(const fs::path& path) override { return real().list(path); }
  void make_directory(const fs::path& path) override {
    counter_.run("make_directory", path, [&] { real().make_directory(path); });
  }
  void rename(const fs::path& from, const fs::path& to) override {
    counter_.run(is_temporary_name(to.filename().string()) ? "discard" : "commit", from,
                 [&] { real().rename(from, to); });
  }
  void remove(const fs::path& path) override {
    counter_.run("remove", path, [&] { real().remove(path); });
  }
  void sync_directory(const fs::path& path) override {
    counter_.run("flush", path, [&] { real().sync_directory(path); });
  }

 private:
  Counter counter_;
};

}  // namespace

FileSystem& wrapped() {
  static KillingFiles files;
  return files;
}

}  // namespace embertable::checkpoint

namespace embertable {
namespace {

/// Says which saves have returned.
class SaysWhatIsSaved final : public jobs::TrainObserver {
 public:
  explicit SaysWhatIsSaved(bool says) : says_(says) {}
  void saved(const jobs::SaveReport& report) override {
    if (says_) fmt::print("saved {}\n", report.step);
  }

 private:
  bool says_;
};

}  // namespace
}  // namespace embertable

int main(int argc, char** argv) try {
  using namespace embertable;
  const std::vector<std::string> words(argv, argv + argc);
  if (words.size() != 5 && words.size() != 9) {
    fmt::print(stderr, "kill_child: see the head of tests/kill_child.cc\n");
    return 2;
  }
  if (words[1] == "kill") {
    checkpoint::target = {std::stoll(words[5]), words[6], std::stoll(words[7]),
                          words[8] == "after"};
  }
  const jobs::Job job = jobs::read_job(words[2]);
  SaysWhatIsSaved observer(words[1] == "kill");
  jobs::train(job, {.data_root = words[3], .out = words[4], .resume = true, .threads = 2},
              observer);
  return 0;
} catch (const std::exception& error) {
  fmt::print(stderr, "kill_child: {}\n", error.what());
  return 1;
}
