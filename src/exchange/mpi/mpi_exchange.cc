#include "exchange/mpi/mpi_exchange.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "base/memory.h"
#include "embertable/errors.h"
#include "exchange/mpi/header.h"
#include "exchange/mpi/idling.h"
#include "exchange/mpi/late_hosts.h"
#include "exchange/mpi/pipe_signals.h"
#include "exchange/mpi/process.h"
#include "exchange/open_rounds.h"
#include "exchange/started.h"
#include "exchange/telling.h"

namespace embertable::mpi {
namespace {

using std::chrono::nanoseconds;

// Tags. The messages of channel c have the tag kMessageTag + c.
constexpr std::int32_t kHeaderTag = 0;
constexpr std::int32_t kMessageTag = 1;

/// What comes, or has come, from one host on one channel.
struct Incoming {
  std::int64_t bytes = -1;  ///< size of the message; -1: not known yet
  std::int64_t begun = 0;   ///< bytes that requests were made for
  std::int32_t open = 0;    ///< requests that have not ended
  std::span<std::byte> memory;

  bool complete() const noexcept { return bytes >= 0 && begun == bytes && open == 0; }
};

/// The round that is open on one channel, or was last.
struct Side {
  explicit Side(std::size_t hosts) : incoming(hosts), header(hosts), unsent(hosts, 0) {}
  Arena memory;
  ByteSpan own;  ///< this host's message to itself
  std::vector<Incoming> incoming;
  std::vector<Header> header;        ///< what this host sends
  std::vector<std::int32_t> unsent;  ///< by host: requests that have not ended
};

struct Peer {
  HeaderMessage message;        ///< the last that came, or the next to come
  std::int64_t heard = 0;       ///< headers of rounds that have come
  bool listening = false;       ///< a request for the next is open
  bool gave_up = false;         ///< `message` says so; no header follows before all have given up
  bool differs = false;         ///< `message` is of a round that this host started differently
  std::int32_t discarding = 0;  ///< requests for what nobody reads
};

/// Says what a request is for.
struct Purpose {
  enum Kind { kHear, kReceive, kDiscard, kSend, kFarewell } kind = kHear;
  std::int32_t host = 0;
  std::size_t channel = 0;
};

/// Everything that MPI may still use after an error.
struct State {
  State(std::unique_ptr<Communicator> messages, std::unique_ptr<Communicator> complaining,
        std::int64_t segment_bytes)
      : communicator(std::move(messages)),
        complaints(std::move(complaining)),
        host(communicator->rank()),
        hosts(communicator->size()),
        peers(static_cast<std::size_t>(hosts)),
        nowhere(segment_bytes) {
    for (std::int32_t channel = 0; channel < kNumChannels; ++channel)
      sides.emplace_back(peers.size());
  }

  std::unique_ptr<Communicator> communicator;
  Complaints complaints;
  std::int32_t host;
  std::int32_t hosts;
  std::vector<Side> sides;       ///< by channel
  std::vector<Peer> peers;       ///< by host
  std::vector<Purpose> purpose;  ///< by request
  HeaderMessage farewell;
  std::int32_t farewells = 0;  ///< requests that have not ended
  Mapping nowhere;             ///< where messages go that nobody reads
  std::vector<Ended> ended;
};

class MpiExchange final : public Exchange {
 public:
  MpiExchange(std::unique_ptr<Parent> parent, std::unique_ptr<State> state, nanoseconds deadline,
              std::int64_t segment_bytes)
      : parent_(std::move(parent)),
        state_(std::move(state)),
        deadline_(deadline),
        segment_bytes_(segment_bytes),
        rounds_(state_->hosts),
        telling_(state_->hosts) {
    reserve(0);
  }

  ~MpiExchange() override {
    const PipeSignalsHeld held;
    finish_rounds();
    if (!broken_.empty() || rounds_.any() || parent_->library().finalized()) {
      if (rounds_.any()) keep_from_finalizing();  // it would wait for their requests
      [[maybe_unused]] auto* const kept = state_.release();
      return;
    }
    state_->communicator->free();
    state_->complaints.free();
  }

  std::int32_t host() const noexcept override { return state_->host; }
  std::int32_t hosts() const noexcept override { return state_->hosts; }

  void start(Channel channel, const Stage& stage, std::span<const ByteSpan> send) override {
    require_whole();
    const PipeSignalsHeld held;
    OpenRounds after = rounds_;
    const std::int64_t round = after.start(channel, stage, send.size());
    Side& side = side_of(channel);
    side.memory.reset();
    std::size_t requests = 0;
    for (const ByteSpan message : send) requests += 2 + segments(std::ssize(message));
    reserve(requests);
    rounds_ = after;
    std::ranges::fill(side.incoming, Incoming());
    side.own = send[state_->host];
    for_each_peer([&](std::int32_t peer) {
      Header& header = side.header[peer];
      header = {.round = round, .bytes = std::ssize(send[peer])};
      header.set({channel, stage});
      this->send(std::as_bytes(std::span(&side.header[peer], 1)), peer, kHeaderTag,
                 {Purpose::kSend, peer, static_cast<std::size_t>(channel)});
      this->send(send[peer], peer, kMessageTag + static_cast<std::int32_t>(channel),
                 {Purpose::kSend, peer, static_cast<std::size_t>(channel)});
    });
  }

  void finish(Channel channel, std::span<ByteSpan> received) override {
    require_whole();
    const PipeSignalsHeld held;
    const std::int64_t round = rounds_.finish(channel, received.size());
    Side& side = side_of(channel);
    const auto is_late = [&](std::int32_t peer) {
      return !side.incoming[peer].complete() || side.unsent[peer] != 0;
    };
    bool gave_up = false, differs = false;
    wait(rounds_.stage(channel), round, is_late, [&] {
      bool complete = true;
      for_each_peer([&](std::int32_t peer) {
        hear(peer, round);
        receive(peer);
        gave_up |= state_->peers[peer].gave_up && state_->peers[peer].heard < round;
        differs |= state_->peers[peer].differs;
        complete &= side.incoming[peer].complete() && side.unsent[peer] == 0;
      });
      return complete || gave_up || differs;
    });
    if (gave_up) throw give_up("", kFollows);
    if (differs) throw give_up(difference(), kFailed);
    rounds_.close(channel);
    for (std::int32_t from = 0; from < state_->hosts; ++from)
      received[from] = from == state_->host ? side.own : ByteSpan(side.incoming[from].memory);
  }

  bool is_open(Channel channel) const noexcept override { return rounds_.is_open(channel); }

  GivenUp abort(std::string_view reason) override {
    require_whole();
    const PipeSignalsHeld held;
    return give_up(reason, kFailed);
  }

 private:
  /// Waits for the messages of rounds that were left open, without which MPI cannot end. After an
  /// error the others may not come to them.
  void finish_rounds() noexcept {
    if (!broken_.empty() || parent_->library().finalized() || std::uncaught_exceptions() > 0)
      return;
    try {
      std::vector<ByteSpan> received(state_->sides[0].incoming.size());
      for (const Channel channel : {Channel::kStep, Channel::kAhead, Channel::kAgreement})
        if (rounds_.is_open(channel)) finish(channel, received);
    } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): the rounds show it
    }
  }

  Side& side_of(Channel channel) noexcept {
    return state_->sides[static_cast<std::size_t>(channel)];
  }

  void require_whole() const {
    if (!broken_.empty()) throw StateError(broken_);
  }

  /// Visits the other hosts, each host another one first.
  template <class Visit>
  void for_each_peer(Visit visit) {
    for (std::int32_t i = 1; i < state_->hosts; ++i) visit((state_->host + i) % state_->hosts);
  }

  std::size_t segments(std::int64_t bytes) const noexcept {
    return static_cast<std::size_t>((bytes + segment_bytes_ - 1) / segment_bytes_);
  }

  /// Makes sure that so many requests more need no memory, and none that give_up makes.
  void reserve(std::size_t requests) {
    const std::size_t to_give_up = 3 * static_cast<std::size_t>(state_->hosts);
    const std::size_t count = state_->communicator->reserve(requests + to_give_up);
    if (state_->purpose.size() < count) state_->purpose.resize(count);
    state_->ended.reserve(count);
  }

  void note(std::int32_t request, Purpose purpose) noexcept {
    state_->purpose[static_cast<std::size_t>(request)] = purpose;
  }

  std::int32_t& count_of(const Purpose& purpose) noexcept {
    Side& side = state_->sides[purpose.channel];
    switch (purpose.kind) {
      case Purpose::kReceive:
        return side.incoming[purpose.host].open;
      case Purpose::kDiscard:
        return state_->peers[purpose.host].discarding;
      case Purpose::kSend:
        return side.unsent[purpose.host];
      default:
        return state_->farewells;
    }
  }

  void send(ByteSpan bytes, std::int32_t to, std::int32_t tag, Purpose purpose) {
    for (std::size_t at = 0; at < bytes.size(); at += static_cast<std::size_t>(segment_bytes_)) {
      const ByteSpan rest = bytes.subspan(at);
      const auto size = std::min(rest.size(), static_cast<std::size_t>(segment_bytes_));
      note(state_->communicator->send(rest.first(size), to, tag), purpose);
      ++count_of(purpose);
    }
  }

  /// Waits for the next header from a host, unless it has given up or the headers up to `round` are
  /// here.
  void hear(std::int32_t host, std::int64_t round) {
    Peer& peer = state_->peers[host];
    if (peer.listening || peer.gave_up || peer.differs || peer.heard >= round) return;
    reserve(1);
    const std::span<std::byte> bytes = std::as_writable_bytes(std::span(&peer.message, 1));
    note(state_->communicator->receive(bytes, host, kHeaderTag), {Purpose::kHear, host, 0});
    peer.listening = true;
  }

  /// Begins to receive what a host has announced.
  void receive(std::int32_t host) {
    for (std::size_t channel = 0; channel < state_->sides.size(); ++channel) {
      Side& side = state_->sides[channel];
      Incoming& incoming = side.incoming[host];
      if (incoming.bytes <= incoming.begun) continue;
      incoming.memory = room_for(host, static_cast<Channel>(channel), incoming.bytes);
      reserve(segments(incoming.bytes));
      for (; incoming.begun < incoming.bytes; ++incoming.open)
        begin(incoming.memory, host, channel, incoming, Purpose::kReceive);
    }
  }

  /// Throws IoError naming host and stage if there is no memory for its message.
  std::span<std::byte> room_for(std::int32_t host, Channel channel, std::int64_t bytes) {
    try {
      return side_of(channel).memory.take<std::byte>(bytes);
    } catch (const IoError& error) {
      throw IoError("mpi exchange: " + to_string(rounds_.stage(channel)) + " of rank " +
                    std::to_string(host) + ": " + error.what());
    }
  }

  /// Asks for the next segment of a message.
  void begin(std::span<std::byte> memory, std::int32_t host, std::size_t channel,
             Incoming& incoming, Purpose::Kind kind) {
    const std::int64_t size = std::min(segment_bytes_, incoming.bytes - incoming.begun);
    const std::int64_t at = kind == Purpose::kReceive ? incoming.begun : 0;
    note(state_->communicator->receive(
             memory.subspan(static_cast<std::size_t>(at), static_cast<std::size_t>(size)), host,
             kMessageTag + static_cast<std::int32_t>(channel)),
         {kind, host, channel});
    incoming.begun += size;
  }

  /// Lets MPI work. Returns whether a request has ended.
  bool progress(const Stage& stage, std::int64_t round) {
    state_->ended.clear();
    state_->communicator->test(state_->ended);
    for (const Ended& each : state_->ended) {
      const Purpose purpose = state_->purpose[static_cast<std::size_t>(each.request)];
      if (!each.error.empty()) {
        fail(Knowledge::kSeen, is_lost(purpose.host, each.error, state_->host, to_string(stage)),
             round);
      }
      if (purpose.kind == Purpose::kHear)
        take_header(purpose.host, stage, round);
      else
        --count_of(purpose);
    }
    return !state_->ended.empty();
  }

  void take_header(std::int32_t host, const Stage& stage, std::int64_t round) {
    Peer& peer = state_->peers[host];
    peer.listening = false;
    const Header& header = peer.message.header;
    const std::int64_t number = peer.heard + 1;
    if (!header.is_valid(number))
      fail(Knowledge::kSeen,
           "mpi exchange: rank " + std::to_string(host) + " sent no valid header of its round " +
               std::to_string(number) + "; rank " + std::to_string(state_->host) +
               " waited in: " + to_string(stage),
           round);
    if (header.gives_up()) {
      peer.gave_up = true;
      return;
    }
    peer.heard = number;
    // Its channel may still have a round open, whose message comes first.
    peer.differs = !giving_up_ && !header.is(rounds_.started(header.round));
    if (!peer.differs) expect(host, header);
  }

  /// Makes known what comes from a host on the channel of a header.
  void expect(std::int32_t host, const Header& header) noexcept {
    Incoming& incoming = state_->sides[static_cast<std::size_t>(header.channel)].incoming[host];
    incoming.bytes = header.bytes;
    incoming.begun = 0;
  }

  /// Returns why hosts that started a round differently cannot go on. Requires: one has.
  std::string difference() const noexcept {
    const auto peer = std::ranges::find(state_->peers, true, &Peer::differs);
    const Header& header = peer->message.header;
    return different_calls(state_->host, rounds_.started(header.round),
                           static_cast<std::int32_t>(peer - state_->peers.begin()),
                           header.started());
  }

  /// Lets MPI work until `done` says so. Throws StateError if nothing has come for the deadline, or
  /// if another process has waited in vain.
  template <class Late, class Done>
  void wait(const Stage& stage, std::int64_t round, Late is_late, Done done) {
    Idling idling;
    for (Idling unchecked; !done();) {
      if (progress(stage, round)) {
        idling = {};
        continue;
      }
      const Idling::Clock::duration idle = idling.time();
      if (idle > std::chrono::milliseconds(1) && unchecked.time() > std::chrono::milliseconds(1)) {
        const bool complained = state_->complaints.check();
        unchecked = {};
        // What a lost rank sent before may be all that this wait is for.
        const std::optional<Found>& lost = state_->complaints.lost();
        if (lost && is_late(lost->rank) && !complained)
          fail(Knowledge::kSeen, is_lost(lost->rank, lost->error, state_->host, to_string(stage)),
               round);
        if (complained || idle > deadline_) {
          std::vector<bool> late(static_cast<std::size_t>(state_->hosts));
          for_each_peer([&](std::int32_t peer) { late[peer] = is_late(peer); });
          fail(Knowledge::kGuessed, not_come(late, deadline_, state_->host, to_string(stage)),
               round);
        }
      }
      idling.pause();
    }
  }

  /// Tells the other processes that this one waits no longer. From now on every call throws.
  [[noreturn]] void fail(Knowledge knowledge, const std::string& text, std::int64_t round) {
    keep_from_finalizing();
    broken_ = text;
    const nanoseconds longest = std::chrono::seconds(1);
    broken_ = state_->complaints.settle(knowledge, epoch_, round, text,
                                        std::min(deadline_ / 10, longest));
    throw StateError(broken_);
  }

  /// Leaves what the hosts do together: tells the others why, and reads and drops what they still
  /// send. Returns the first host with a reason of its own.
  GivenUp give_up(std::string_view reason, std::int32_t how) {
    giving_up_ = true;
    reason = reason.substr(0, state_->farewell.reason.size());
    state_->farewell.header = {.bytes = std::ssize(reason), .channel = how};
    std::ranges::copy(reason, state_->farewell.reason.begin());
    const ByteSpan whole = std::as_bytes(std::span(&state_->farewell, 1));
    const ByteSpan bytes = whole.first(offsetof(HeaderMessage, reason) + reason.size());
    for_each_peer([&](std::int32_t peer) {
      note(state_->communicator->send(bytes, peer, kHeaderTag), {Purpose::kFarewell, peer, 0});
      ++state_->farewells;
    });
    const Stage stage{"the end of a failed operation"};
    const auto is_late = [&](std::int32_t peer) { return !state_->peers[peer].gave_up; };
    for_each_peer([&](std::int32_t peer) {
      wait(stage, kLastRound, is_late, [&] { return drained(peer); });
    });
    wait(stage, kLastRound, is_late, [&] { return all_sent(); });
    giving_up_ = false;
    rounds_.restart();
    ++epoch_;
    for (Peer& peer : state_->peers) {
      peer.heard = 0;
      peer.gave_up = false;
    }
    return first_to_give_up(reason);
  }

  /// Drops what a host has sent. Returns whether it has given up and nothing more comes from it.
  bool drained(std::int32_t host) {
    Peer& peer = state_->peers[host];
    bool read = peer.discarding == 0;
    for (std::size_t channel = 0; channel < state_->sides.size(); ++channel) {
      Incoming& incoming = state_->sides[channel].incoming[host];
      if (incoming.begun < incoming.bytes && peer.discarding == 0) {
        begin({state_->nowhere.data(), static_cast<std::size_t>(segment_bytes_)}, host, channel,
              incoming, Purpose::kDiscard);
        ++peer.discarding;
      }
      read &= incoming.begun >= incoming.bytes && incoming.open == 0;
    }
    if (!read) return false;
    if (peer.differs) {
      expect(host, peer.message.header);
      peer.differs = false;
      return false;
    }
    hear(host, kLastRound);
    return peer.gave_up;
  }

  bool all_sent() const noexcept {
    return state_->farewells == 0 && std::ranges::all_of(state_->sides, [](const Side& side) {
             return std::ranges::all_of(side.unsent, [](std::int32_t open) { return open == 0; });
           });
  }

  GivenUp first_to_give_up(std::string_view own_reason) const noexcept {
    for (std::int32_t host = 0; host < state_->hosts; ++host) {
      const bool own = host == state_->host;
      const HeaderMessage& message = own ? state_->farewell : state_->peers[host].message;
      if (message.header.channel != kFailed) continue;
      const auto size = static_cast<std::size_t>(message.header.bytes);
      return telling_.of(host, own ? own_reason : std::string_view(message.reason.data(), size));
    }
    return telling_.of(state_->host, own_reason);
  }

  static constexpr std::int64_t kLastRound = std::numeric_limits<std::int64_t>::max();

  std::unique_ptr<Parent> parent_;
  std::unique_ptr<State> state_;
  const nanoseconds deadline_;
  const std::int64_t segment_bytes_;
  OpenRounds rounds_;
  const Telling telling_;
  std::int64_t epoch_ = 0;  ///< how often the hosts have given up
  bool giving_up_ = false;
  std::string broken_;  ///< what every call throws; "": nothing
};

}  // namespace

std::unique_ptr<Exchange> make_exchange(const MpiOptions& options, std::int64_t segment_bytes,
                                        const char* version) {
  constexpr double kLongest = 1e9;
  if (!(options.deadline_seconds > 0 && options.deadline_seconds <= kLongest))
    throw ValueError("mpi exchange: deadline_seconds must be > 0 and at most 1e9, got " +
                     std::to_string(options.deadline_seconds));
  const auto deadline = std::chrono::duration_cast<nanoseconds>(
      std::chrono::duration<double>(options.deadline_seconds));
  const PipeSignalsHeld held;
  auto parent = std::make_unique<Parent>(options.communicator);
  greet(parent->communicator(), version, deadline);
  auto messages = parent->communicator().duplicate();
  auto complaints = parent->communicator().duplicate();
  auto state = std::make_unique<State>(std::move(messages), std::move(complaints), segment_bytes);
  return std::make_unique<MpiExchange>(std::move(parent), std::move(state), deadline,
                                       segment_bytes);
}

}  // namespace embertable::mpi

namespace embertable {

std::unique_ptr<Exchange> make_mpi_exchange(const MpiOptions& options) {
  return mpi::make_exchange(options, mpi::kSegmentBytes);
}

}  // namespace embertable
