#include "exchange/mpi/late_hosts.h"

#include <algorithm>
#include <cstdio>
#include <tuple>

#include "exchange/mpi/idling.h"

namespace embertable::mpi {
namespace {

constexpr std::int32_t kTag = 0;

template <class T>
std::span<std::byte> bytes_of(T& value) {
  return std::as_writable_bytes(std::span(&value, 1));
}

}  // namespace

std::string not_come(const std::vector<bool>& late, std::chrono::nanoseconds deadline,
                     std::int32_t me, std::string_view stage) {
  std::string ranks;
  std::int64_t count = 0;
  for (std::size_t rank = 0; rank < late.size(); ++rank) {
    if (!late[rank]) continue;
    ranks += (count++ == 0 ? "" : ", ") + std::to_string(rank);
  }
  std::array<char, 32> seconds{};
  std::snprintf(seconds.data(), seconds.size(), "%g",
                std::chrono::duration<double>(deadline).count());
  return "mpi exchange: " + std::string(count == 1 ? "rank " : "ranks ") + ranks +
         (count == 1 ? " has" : " have") + " not come within " + seconds.data() + " s; rank " +
         std::to_string(me) + " waited in: " + std::string(stage);
}

std::string is_lost(std::int32_t rank, std::string_view error, std::int32_t me,
                    std::string_view stage) {
  return "mpi exchange: rank " + std::to_string(rank) + " is lost (" + std::string(error) +
         "); rank " + std::to_string(me) + " waited in: " + std::string(stage);
}

Complaints::Complaints(std::unique_ptr<Communicator> communicator)
    : communicator_(std::move(communicator)), host_(communicator_->rank()) {
  communicator_->reserve(static_cast<std::size_t>(communicator_->size()) + 1);
}

void Complaints::test() {
  ended_.clear();
  communicator_->test(ended_);
  for (const Ended& each : ended_) {
    if (each.request != receive_) continue;
    receive_ = -1;
    if (!each.error.empty()) continue;
    incoming_.text.back() = '\0';
    if (first_host_ >= 0 && !counts_more(incoming_, from_, first_, first_host_)) continue;
    first_ = incoming_;
    first_host_ = from_;
  }
}

bool Complaints::counts_more(const Complaint& one, std::int32_t by, const Complaint& other,
                             std::int32_t other_by) noexcept {
  return std::tie(one.knowledge, one.epoch, one.round, by) <
         std::tie(other.knowledge, other.epoch, other.round, other_by);
}

bool Complaints::check() {
  if (receive_ < 0) {
    const std::optional<Found> found = communicator_->probe(kTag);
    if (found && found->error.empty()) {
      from_ = found->rank;
      receive_ = communicator_->receive(bytes_of(incoming_), from_, kTag);
    } else if (found) {
      lost_ = found;
    }
  }
  if (receive_ >= 0) test();
  return first_host_ >= 0;
}

std::string Complaints::settle(Knowledge knowledge, std::int64_t epoch, std::int64_t round,
                               std::string_view text, std::chrono::nanoseconds wait) {
  mine_.knowledge = knowledge;
  mine_.epoch = epoch;
  mine_.round = round;
  std::ranges::copy(text.substr(0, mine_.text.size() - 1), mine_.text.begin());
  for (std::int32_t host = 0; host < communicator_->size(); ++host)
    if (host != host_) communicator_->send(bytes_of(mine_), host, kTag);
  for (const Idling idling; idling.time() < wait; idling.pause()) {
    test();
    check();
  }
  const bool own = first_host_ < 0 || counts_more(mine_, host_, first_, first_host_);
  return own ? std::string(text) : std::string(first_.text.data());
}

}  // namespace embertable::mpi
