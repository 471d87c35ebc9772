#include "checkpoint/piped_file.h"

#include <system_error>

namespace embertable::checkpoint {

PipedFile::~PipedFile() { stop(); }

std::span<std::byte> PipedFile::chunk() {
  if (!thread_.joinable() && written_ < sent_) {
    try {
      thread_ = std::thread([this] { write_behind(); });
    } catch (const std::system_error&) {  // no thread is left: the caller waits for the disk
      write_pending();
    }
  }
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return error_ || sent_ - written_ < kChunks; });
  if (error_) rethrow();
  Chunk& chunk = at(sent_);
  if (!chunk.memory) chunk.memory = std::make_unique_for_overwrite<std::byte[]>(kChunkBytes);
  return {chunk.memory.get(), kChunkBytes};
}

void PipedFile::send(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  at(sent_++).bytes = bytes;
  changed_.notify_all();
}

void PipedFile::finish() {
  if (!thread_.joinable() && written_ < sent_) write_pending();
  stop();
  if (error_) rethrow();
  file_->sync();
}

/// Writes the one chunk that was sent since there is no thread.
void PipedFile::write_pending() {
  file_->write({at(written_).memory.get(), at(written_).bytes});
  ++written_;
}

/// Runs on the thread: writes what was sent, in order, until all is written or a write fails.
void PipedFile::write_behind() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return closing_ || written_ < sent_; });
    if (written_ == sent_) return;
    const Chunk& chunk = at(written_);
    lock.unlock();
    try {
      file_->write({chunk.memory.get(), chunk.bytes});
    } catch (...) {
      lock.lock();
      error_ = std::current_exception();
      changed_.notify_all();
      return;
    }
    lock.lock();
    ++written_;
    changed_.notify_all();
  }
}

void PipedFile::stop() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

void PipedFile::rethrow() { std::rethrow_exception(error_); }

}  // namespace embertable::checkpoint
