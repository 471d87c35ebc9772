#include "checkpoint/local/lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "base/interruption.h"
#include "checkpoint/local/system_calls.h"

namespace embertable::checkpoint {
namespace {

/// Returns the whole of a short text; "" if it cannot be read.
std::string short_text(int descriptor) {
  char text[64];
  const ssize_t size = retry([&] { return ::pread(descriptor, text, sizeof text, 0); });
  return {text, size < 0 ? 0 : static_cast<std::size_t>(size)};
}

}  // namespace

Locked::Locked(int descriptor) : descriptor_(descriptor), process_(::getpid()) {}

Locked::~Locked() {
  // A forked child shares the lock and must not release its parent's; a parent releases it for all.
  if (is_ours()) ::flock(descriptor_, LOCK_UN);
  ::close(descriptor_);
}

bool Locked::is_ours() const noexcept { return ::getpid() == process_; }

int Locked::take() {
  return retry([&] { return ::flock(descriptor_, LOCK_EX | LOCK_NB); }) == 0 ? 0 : errno;
}

int Locked::wait() {
  constexpr auto kLongest = std::chrono::milliseconds(20);
  for (auto pause = std::chrono::milliseconds(1);; pause = std::min(2 * pause, kLongest)) {
    const int failed = take();
    if (failed != EWOULDBLOCK) return failed;
    Interruption::ask();
    std::this_thread::sleep_for(pause);
  }
}

bool Locked::is_named(int directory, const std::string& name) const {
  struct stat held {
  }, named{};
  return ::fstat(descriptor_, &held) == 0 &&
         ::fstatat(directory, name.c_str(), &named, AT_SYMLINK_NOFOLLOW) == 0 &&
         held.st_dev == named.st_dev && held.st_ino == named.st_ino;
}

void LocalLock::take(const std::filesystem::path& path, int directory) {
  directory_.emplace(directory);
  const int failed = file_.take();
  if (failed == EWOULDBLOCK) throw_held(path, short_text(file_.descriptor()));
  if (failed != 0) fail(path, "lock", failed);
  // Some file systems, such as NFS, lock files alone.
  if (directory_->take() == EWOULDBLOCK) throw_held(path, "");
  const std::string holder = std::to_string(::getpid()) + "\n";
  if (::ftruncate(file_.descriptor(), 0) != 0 ||
      retry([&] { return ::pwrite(file_.descriptor(), holder.data(), holder.size(), 0); }) < 0)
    fail(path, "lock", errno);
}

LocalTurn::~LocalTurn() {
  if (has_turn_ && file_.is_ours()) ::unlinkat(directory_, name_.c_str(), 0);
  if (directory_ >= 0) ::close(directory_);
}

bool LocalTurn::wait(const std::filesystem::path& path, int directory) {
  directory_ = directory;
  if (const int failed = file_.wait()) fail(path, "lock", failed);
  return has_turn_ = file_.is_named(directory_, name_);
}

}  // namespace embertable::checkpoint
