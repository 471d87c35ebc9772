#include "exchange/threads_exchange.h"

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <mutex>
#include <optional>
#include <string>

#include "base/memory.h"
#include "embertable/errors.h"
#include "exchange/open_rounds.h"
#include "exchange/started.h"
#include "exchange/telling.h"

namespace embertable {
namespace {

/// Lets the hosts of one process meet: a board for each, with its messages and its state. Nobody
/// waits with a deadline: every host comes or gives up, and a slow one is no error.
class MeetingPlace {
 public:
  explicit MeetingPlace(std::int32_t hosts) : boards_(hosts), telling_(hosts) {
    for (Board& board : boards_)
      for (std::vector<ByteSpan>& message : board.message) message.resize(boards_.size());
  }

  std::int32_t hosts() const noexcept { return static_cast<std::int32_t>(boards_.size()); }

  /// Shows a host's messages to the others.
  void post(std::int32_t host, Channel channel, const OpenRounds& rounds,
            std::span<const ByteSpan> messages) {
    const std::lock_guard lock(mutex_);
    Board& board = boards_[host];
    std::ranges::copy(messages, board.message[index(channel)].begin());
    board.rounds = rounds;
    changed_.notify_all();
  }

  /// Waits until every host has started a round. Returns false if one of them gave up before.
  bool meet(std::int32_t host, std::int64_t round) {
    std::unique_lock lock(mutex_);
    const auto started = [&](const Board& b) { return b.rounds.last() >= round; };
    const auto left = [&](const Board& b) { return b.gave_up && !started(b); };
    const auto is_over = [&] {
      return std::ranges::all_of(boards_, started) || std::ranges::any_of(boards_, left);
    };
    wait_as(host, round, lock, is_over);
    return std::ranges::all_of(boards_, started);
  }

  /// Compares how hosts that have met started the round. Returns why they cannot go on, or nothing.
  /// They all find a difference, or none does.
  std::optional<std::string> difference(std::int32_t host, std::int64_t round) {
    const std::lock_guard lock(mutex_);
    const Started own = boards_[host].rounds.started(round);
    for (std::int32_t other = 0; other < hosts(); ++other) {
      const Started theirs = boards_[other].rounds.started(round);
      if (!(theirs == own)) return different_calls(host, own, other, theirs);
    }
    return std::nullopt;
  }

  /// Requires: the hosts have met, and `to` has not parted from the others.
  ByteSpan message(Channel channel, std::int32_t from, std::int32_t to) const {
    return boards_[from].message[index(channel)][to];
  }

  /// Waits until no host reads messages of this round any more. A host that left earlier would
  /// remove what others still read. Returns why that cannot be, if one of them waits for this host
  /// first: to start a later round, or to read another one.
  std::optional<std::string> part(std::int32_t host, Channel channel, std::int64_t round) {
    std::unique_lock lock(mutex_);
    Board& mine = boards_[host];
    mine.read[index(channel)] = round;
    changed_.notify_all();
    const auto reads = [&](const Board& b) { return !b.gave_up && b.read[index(channel)] < round; };
    const auto waits = [&](const Board& b) {
      if (!reads(b) || b.waits_for == 0) return false;
      if (b.waits_for > mine.rounds.last()) return true;
      const Channel other = b.rounds.started(b.waits_for).channel;
      return b.read[index(other)] == b.waits_for && mine.read[index(other)] < b.waits_for;
    };
    wait_as(host, round, lock, [&] {
      return std::ranges::none_of(boards_, reads) || std::ranges::any_of(boards_, waits);
    });
    const auto other = std::ranges::find_if(boards_, waits);
    if (other == boards_.end()) return std::nullopt;
    return different_calls(host, mine.rounds.started(round),
                           static_cast<std::int32_t>(other - boards_.begin()),
                           other->rounds.started(other->waits_for));
  }

  /// Leaves what the hosts do together, and waits until all others have left it too. An empty
  /// reason: because another host gave up. Returns what all hosts are told.
  GivenUp give_up(std::int32_t host, std::string_view reason, bool own) noexcept {
    std::unique_lock lock(mutex_);
    Board& mine = boards_[host];
    mine.gave_up = true;
    mine.at_fault = own;
    try {
      mine.reason = reason;
    } catch (...) {  // memory for the text may be what this host lacks
      mine.reason = "out of memory";
    }
    ++leaving_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return leaving_ == hosts(); });
    const auto first = std::ranges::find(boards_, true, &Board::at_fault);
    GivenUp told = telling_.of(static_cast<std::int32_t>(first - boards_.begin()), first->reason);
    wait_for_all_to_hear(lock);
    return told;
  }

 private:
  struct Board {
    OpenRounds rounds{1};        ///< a copy, made when the host last started one
    std::int64_t waits_for = 0;  ///< number of the round in which it waits for others, 0: none
    std::array<std::int64_t, kNumChannels> read{};  ///< the last round whose messages it has read
    std::array<std::vector<ByteSpan>, kNumChannels> message;
    bool gave_up = false;   ///< it starts and reads nothing until all hosts have given up
    bool at_fault = false;  ///< it gave up for a reason of its own
    std::string reason;
  };

  template <class IsOver>
  void wait_as(std::int32_t host, std::int64_t round, std::unique_lock<std::mutex>& lock,
               IsOver is_over) {
    if (is_over()) return;
    boards_[host].waits_for = round;
    changed_.notify_all();
    changed_.wait(lock, is_over);
    boards_[host].waits_for = 0;
  }

  static std::size_t index(Channel channel) noexcept { return static_cast<std::size_t>(channel); }

  /// The last host to come makes the boards ready for new rounds.
  void wait_for_all_to_hear(std::unique_lock<std::mutex>& lock) noexcept {
    if (++heard_ < hosts()) {
      changed_.wait(lock, [&, before = epoch_] { return epoch_ != before; });
      return;
    }
    for (Board& board : boards_) {
      board.rounds.restart();
      board.read = {};
      board.gave_up = board.at_fault = false;
    }
    leaving_ = heard_ = 0;
    ++epoch_;
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Board> boards_;
  const Telling telling_;
  std::int32_t leaving_ = 0;  ///< hosts that have given up
  std::int32_t heard_ = 0;    ///< hosts that know who gave up first
  std::uint64_t epoch_ = 0;   ///< how often the hosts have given up
};

class ThreadsExchange final : public Exchange {
 public:
  ThreadsExchange(std::shared_ptr<MeetingPlace> place, std::int32_t host)
      : place_(std::move(place)), host_(host), rounds_(place_->hosts()) {}

  std::int32_t host() const noexcept override { return host_; }
  std::int32_t hosts() const noexcept override { return place_->hosts(); }

  void start(Channel channel, const Stage& stage, std::span<const ByteSpan> send) override {
    OpenRounds after = rounds_;
    after.start(channel, stage, send.size());
    memory_[static_cast<std::size_t>(channel)].reset();
    rounds_ = after;
    place_->post(host_, channel, rounds_, send);
  }

  void finish(Channel channel, std::span<ByteSpan> received) override {
    const std::int64_t round = rounds_.finish(channel, received.size());
    if (!place_->meet(host_, round)) throw give_up("", false);
    if (const std::optional<std::string> difference = place_->difference(host_, round))
      throw give_up(*difference, true);
    std::exception_ptr failure;
    try {
      copy_messages(channel, received);
    } catch (...) {  // there is no memory for them; the others may still read those of this host
      failure = std::current_exception();
    }
    const std::optional<std::string> difference = place_->part(host_, channel, round);
    if (difference) throw give_up(*difference, true);
    rounds_.close(channel);
    if (failure) std::rethrow_exception(failure);
  }

  bool is_open(Channel channel) const noexcept override { return rounds_.is_open(channel); }

  GivenUp abort(std::string_view reason) override { return give_up(reason, true); }

 private:
  GivenUp give_up(std::string_view reason, bool own) {
    rounds_.restart();
    return place_->give_up(host_, reason, own);
  }

  void copy_messages(Channel channel, std::span<ByteSpan> received) {
    Arena& memory = memory_[static_cast<std::size_t>(channel)];
    for (std::int32_t from = 0; from < hosts(); ++from) {
      const ByteSpan message = place_->message(channel, from, host_);
      received[from] = from == host_ ? message : copy(message, memory);
    }
  }

  static ByteSpan copy(ByteSpan message, Arena& memory) {
    if (message.empty()) return {};
    const std::span<std::byte> bytes =
        memory.take<std::byte>(static_cast<std::int64_t>(message.size()));
    std::memcpy(bytes.data(), message.data(), message.size());
    return bytes;
  }

  std::shared_ptr<MeetingPlace> place_;
  std::int32_t host_;
  OpenRounds rounds_;
  std::array<Arena, kNumChannels> memory_;
};

}  // namespace

std::vector<std::unique_ptr<Exchange>> make_threads_exchange(std::int32_t hosts) {
  if (hosts < 1)
    throw ValueError("threads exchange: hosts must be >= 1, got " + std::to_string(hosts));
  const auto place = std::make_shared<MeetingPlace>(hosts);
  std::vector<std::unique_ptr<Exchange>> all;
  for (std::int32_t host = 0; host < hosts; ++host)
    all.push_back(std::make_unique<ThreadsExchange>(place, host));
  return all;
}

}  // namespace embertable
