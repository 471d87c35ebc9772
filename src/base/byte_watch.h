#pragma once

#include <cstdint>
#include <functional>

namespace embertable {

/// Lets the caller of a long call, such as a save, see how far it is.
class ByteWatch {
 public:
  /// Receives bytes that the call expects to read or write further, and those that it has read or
  /// written. Must not throw.
  using See = std::function<void(std::int64_t expected, std::int64_t done)>;

  /// While this lives, calls of this thread report to `see`, and no longer to an outer watch.
  explicit ByteWatch(See see);
  ~ByteWatch();
  ByteWatch(const ByteWatch&) = delete;
  ByteWatch& operator=(const ByteWatch&) = delete;

  /// Report to the watch of this thread, if there is one.
  static void expect(std::int64_t bytes);
  static void done(std::int64_t bytes);

 private:
  const See see_;
  const ByteWatch* const outer_;
};

}  // namespace embertable
