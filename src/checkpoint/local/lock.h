#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>

#include "checkpoint/file.h"

namespace embertable::checkpoint {

/// A descriptor that is locked as long as this object lives. Owns it.
class Locked {
 public:
  explicit Locked(int descriptor);
  ~Locked();
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;

  int descriptor() const noexcept { return descriptor_; }

  /// False in a forked process, which shares the lock with its parent.
  bool is_ours() const noexcept;

  /// Takes the lock if it is free. Returns 0 or an error number.
  int take();

  /// Waits for the lock. Returns 0 or an error number; throws what an Interruption throws.
  int wait();

  /// True if what is locked still has this name.
  bool is_named(int directory, const std::string& name) const;

 private:
  int descriptor_;
  pid_t process_;
};

/// Locks a file, which others see and older libraries lock too, and its directory, which stays
/// locked when somebody removes the file.
class LocalLock final : public FileLock {
 public:
  explicit LocalLock(int file) : file_(file) {}

  /// Owns the descriptor of the directory. Throws StateError naming the process that holds a lock,
  /// IoError.
  void take(const std::filesystem::path& path, int directory);

  bool is_named(int directory, const std::string& name) const {
    return file_.is_named(directory, name);
  }

 private:
  Locked file_;
  std::optional<Locked> directory_;
};

/// A lock whose file is there only while somebody holds it or waits for it.
class LocalTurn final : public FileLock {
 public:
  LocalTurn(int file, std::string name) : file_(file), name_(std::move(name)) {}
  ~LocalTurn() override;
  LocalTurn(const LocalTurn&) = delete;
  LocalTurn& operator=(const LocalTurn&) = delete;

  /// Returns false if who had the lock before has removed the file. Owns the descriptor of the
  /// directory. Throws IoError, and what an Interruption throws.
  bool wait(const std::filesystem::path& path, int directory);

 private:
  Locked file_;
  int directory_ = -1;
  std::string name_;
  bool has_turn_ = false;
};

}  // namespace embertable::checkpoint
