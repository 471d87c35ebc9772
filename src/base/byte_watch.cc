#include "base/byte_watch.h"

#include <utility>

namespace embertable {
namespace {

thread_local const ByteWatch* watch_of_thread = nullptr;

}  // namespace

ByteWatch::ByteWatch(See see)
    : see_(std::move(see)), outer_(std::exchange(watch_of_thread, this)) {}

ByteWatch::~ByteWatch() { watch_of_thread = outer_; }

void ByteWatch::expect(std::int64_t bytes) {
  if (watch_of_thread != nullptr) watch_of_thread->see_(bytes, 0);
}

void ByteWatch::done(std::int64_t bytes) {
  if (watch_of_thread != nullptr) watch_of_thread->see_(0, bytes);
}

}  // namespace embertable
