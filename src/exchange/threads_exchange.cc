#include "exchange/threads_exchange.h"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <mutex>
#include <string>

#include "base/memory.h"
#include "embertable/errors.h"

namespace embertable {
namespace {

/// Lets the hosts of one process meet: a barrier with a deadline, and a board for the messages of
/// each.
class MeetingPlace {
 public:
  MeetingPlace(std::int32_t hosts, std::chrono::milliseconds timeout)
      : hosts_(hosts), timeout_(timeout), here_(hosts), posted_(hosts), error_(hosts) {}

  std::int32_t hosts() const noexcept { return hosts_; }

  /// Returns when every host has called. What a host wrote before is visible to all others until
  /// they part.
  void meet(std::int32_t host) {
    std::unique_lock lock(mutex_);
    check();
    here_[host] = true;
    if (++arrived_ == hosts_) {
      arrived_ = 0;
      std::fill(here_.begin(), here_.end(), false);
      ++meeting_;
      changed_.notify_all();
      return;
    }
    const std::uint64_t meeting = meeting_;
    const bool in_time =
        changed_.wait_for(lock, timeout_, [&] { return meeting_ != meeting || !broken_.empty(); });
    if (meeting_ != meeting) return;
    if (!in_time)
      break_up("waited " + std::to_string(timeout_.count()) + " ms for host" + absent());
    check();
  }

  /// Returns when every host that met has called. It has no deadline, because all of them do call,
  /// and a host that left earlier would remove what others still read.
  void part() noexcept {
    std::unique_lock lock(mutex_);
    if (++parting_ == hosts_) {
      parting_ = 0;
      ++partings_;
      changed_.notify_all();
      return;
    }
    changed_.wait(lock, [this, before = partings_] { return partings_ != before; });
  }

  void post(std::int32_t host, std::span<const ByteSpan> messages) { posted_[host] = messages; }
  ByteSpan message(std::int32_t from, std::int32_t to) const { return posted_[from][to]; }
  std::string& error(std::int32_t host) { return error_[host]; }

  void abort(std::int32_t host, std::string_view reason) noexcept {
    const std::lock_guard lock(mutex_);
    if (broken_.empty())
      break_up("host " + std::to_string(host) + " gave up: " + std::string(reason));
  }

 private:
  void check() const {
    if (!broken_.empty()) throw StateError("exchange: " + broken_);
  }
  void break_up(std::string why) {
    broken_ = std::move(why);
    changed_.notify_all();
  }
  std::string absent() const {
    std::string names;
    for (std::int32_t host = 0; host < hosts_; ++host) {
      if (!here_[host]) names += (names.empty() ? " " : ", ") + std::to_string(host);
    }
    return names;
  }

  const std::int32_t hosts_;
  const std::chrono::milliseconds timeout_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::int32_t arrived_ = 0;
  std::uint64_t meeting_ = 0;
  std::int32_t parting_ = 0;  ///< hosts that have finished reading
  std::uint64_t partings_ = 0;
  std::vector<bool> here_;
  std::string broken_;
  std::vector<std::span<const ByteSpan>> posted_;
  std::vector<std::string> error_;
};

class ThreadsExchange final : public Exchange {
 public:
  ThreadsExchange(std::shared_ptr<MeetingPlace> place, std::int32_t host)
      : place_(std::move(place)), host_(host) {}

  std::int32_t host() const noexcept override { return host_; }
  std::int32_t hosts() const noexcept override { return place_->hosts(); }

  void all_to_all(std::span<const ByteSpan> send, std::span<ByteSpan> received) override {
    place_->post(host_, send);
    place_->meet(host_);
    std::exception_ptr no_memory;
    try {
      copy_messages(received);
    } catch (...) {
      no_memory = std::current_exception();
    }
    place_->part();
    if (no_memory) std::rethrow_exception(no_memory);
  }

  void agree(std::string_view error) override {
    place_->error(host_) = error;
    place_->meet(host_);
    std::string first;
    for (std::int32_t host = 0; host < hosts() && first.empty(); ++host) {
      const std::string& text = place_->error(host);
      if (!text.empty()) first = "host " + std::to_string(host) + ": " + text;
    }
    place_->part();
    if (!first.empty()) throw StateError(first);
  }

  void abort(std::string_view reason) noexcept override { place_->abort(host_, reason); }

 private:
  void copy_messages(std::span<ByteSpan> received) {
    buffer_.reset();
    for (std::int32_t from = 0; from < hosts(); ++from) {
      const ByteSpan message = place_->message(from, host_);
      received[from] = from == host_ ? message : copy(message);
    }
  }

  ByteSpan copy(ByteSpan message) {
    const std::span<std::byte> bytes =
        buffer_.take<std::byte>(static_cast<std::int64_t>(message.size()));
    if (!message.empty()) std::memcpy(bytes.data(), message.data(), message.size());
    return bytes;
  }

  std::shared_ptr<MeetingPlace> place_;
  std::int32_t host_;
  Arena buffer_;
};

}  // namespace

std::vector<std::unique_ptr<Exchange>> make_threads_exchange(std::int32_t hosts,
                                                             std::chrono::milliseconds timeout) {
  if (hosts < 1)
    throw ValueError("threads exchange: hosts must be >= 1, got " + std::to_string(hosts));
  const auto place = std::make_shared<MeetingPlace>(hosts, timeout);
  std::vector<std::unique_ptr<Exchange>> all;
  for (std::int32_t host = 0; host < hosts; ++host)
    all.push_back(std::make_unique<ThreadsExchange>(place, host));
  return all;
}

}  // namespace embertable
