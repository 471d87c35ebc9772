#include "apps/jobs/run/shared_blocks.h"

#include <algorithm>
#include <cstring>

#include "base/bytes.h"

namespace embertable::jobs {
namespace {

Range intersection(Range a, Range b) {
  const std::int64_t begin = std::max(a.begin, b.begin);
  return {begin, std::max(begin, std::min(a.end, b.end))};
}

template <class T>
void append(std::span<const T> values, std::vector<std::byte>& message) {
  const std::span<const std::byte> bytes = std::as_bytes(values);
  message.insert(message.end(), bytes.begin(), bytes.end());
}

using Cursor = ByteCursor<const std::byte>;

template <class T>
void take(Cursor& from, std::span<T> values) {
  const std::byte* bytes = from.take(values.size_bytes());
  if (!values.empty()) std::memcpy(values.data(), bytes, values.size_bytes());
}

}  // namespace

SharedBlocks::SharedBlocks(Ranks& ranks, std::int64_t batch, std::int64_t block_samples,
                           std::vector<std::vector<float>>& rows,
                           const std::vector<std::int64_t>& floats)
    : ranks_(ranks),
      batch_(batch),
      block_samples_(block_samples),
      rows_(rows),
      floats_(floats),
      messages_(ranks.hosts()),
      send_(ranks.hosts()),
      received_(ranks.hosts()) {}

Range SharedBlocks::samples_of(std::int32_t host, std::int64_t size) const noexcept {
  const std::int64_t per_host = batch_ / ranks_.hosts();
  return {std::min(size, host * per_host), std::min(size, (host + 1) * per_host)};
}

/// Returns the number of the first block whose first sample is this host's or a later one's.
std::int64_t SharedBlocks::blocks_begin(std::int32_t host, std::int64_t size) const noexcept {
  return (samples_of(host, size).begin + block_samples_ - 1) / block_samples_;
}

Range SharedBlocks::blocks(std::int64_t size) const noexcept {
  return {blocks_begin(ranks_.host(), size), blocks_begin(ranks_.host() + 1, size)};
}

Range SharedBlocks::computed_by(std::int32_t host, std::int64_t size) const noexcept {
  return {std::min(size, blocks_begin(host, size) * block_samples_),
          std::min(size, blocks_begin(host + 1, size) * block_samples_)};
}

/// True if samples of one block lie in several processes.
bool SharedBlocks::any_shared(std::int64_t size) const noexcept {
  for (std::int32_t host = 1; host < ranks_.hosts(); ++host) {
    const std::int64_t first = samples_of(host, size).begin;
    if (first < size && first % block_samples_ != 0) return true;
  }
  return false;
}

void SharedBlocks::append_rows(Range samples, std::vector<std::byte>& message) const {
  for (std::size_t f = 0; f < rows_.size(); ++f) {
    append(std::span<const float>(rows_[f].data() + samples.begin * floats_[f],
                                  static_cast<std::size_t>(samples.size() * floats_[f])),
           message);
  }
}

/// Takes what `append_rows` appended for these samples.
void SharedBlocks::take_rows(Range samples, ByteSpan message) {
  Cursor from(message);
  for (std::size_t f = 0; f < rows_.size(); ++f) {
    take(from, std::span(rows_[f].data() + samples.begin * floats_[f],
                         static_cast<std::size_t>(samples.size() * floats_[f])));
  }
}

/// Sends messages_ and receives those of the others.
void SharedBlocks::swap(std::string_view what) {
  for (std::size_t host = 0; host < messages_.size(); ++host) send_[host] = messages_[host];
  swap_sent(what);
}

/// Sends send_ and receives what the others send.
void SharedBlocks::swap_sent(std::string_view what) {
  ranks_.start(Channel::kStep, {what, step_}, send_);
  ranks_.finish(Channel::kStep, received_);
}

void SharedBlocks::fetch_rows(std::int64_t size) {
  if (!any_shared(size)) return;
  const std::int32_t me = ranks_.host();
  for (std::int32_t host = 0; host < ranks_.hosts(); ++host) {
    messages_[host].clear();
    if (host != me)
      append_rows(intersection(samples(size), computed_by(host, size)), messages_[host]);
  }
  swap("rows of blocks that hosts share");
  for (std::int32_t host = 0; host < ranks_.hosts(); ++host) {
    if (host != me)
      take_rows(intersection(samples_of(host, size), computed_by(me, size)), received_[host]);
  }
}

void SharedBlocks::share(std::int64_t size, std::span<double> losses, Model& model) {
  const std::int32_t me = ranks_.host();
  const auto blocks_of = [&](std::int32_t host) {
    return Range{blocks_begin(host, size), blocks_begin(host + 1, size)};
  };
  const auto part = [&](Range of) {
    return losses.subspan(static_cast<std::size_t>(of.begin), static_cast<std::size_t>(of.size()));
  };
  to_all_.assign(1, static_cast<std::byte>(ranks_.asked_to_stop() ? 1 : 0));
  append(std::span<const double>(part(blocks(size))), to_all_);
  for (std::int64_t b = blocks(size).begin; b < blocks(size).end; ++b)
    append(std::span<const float>(model.dense_gradients(b)), to_all_);
  for (std::int32_t host = 0; host < ranks_.hosts(); ++host) {
    send_[host] = to_all_;
    const Range shared = intersection(computed_by(me, size), samples_of(host, size));
    if (host == me || shared.size() == 0) continue;
    messages_[host] = to_all_;
    append_rows(shared, messages_[host]);
    send_[host] = messages_[host];
  }
  swap_sent("results of blocks");
  for (std::int32_t host = 0; host < ranks_.hosts(); ++host) {
    Cursor from(received_[host]);
    if (*from.take(1) != std::byte{0}) ranks_.agree_to_stop();
    if (host == me) continue;
    const Range theirs = blocks_of(host);
    take(from, part(theirs));
    for (std::int64_t b = theirs.begin; b < theirs.end; ++b) take(from, model.dense_gradients(b));
    take_rows(intersection(computed_by(host, size), samples(size)),
              {from.at(), static_cast<std::size_t>(from.left())});
  }
}

void SharedBlocks::gather_rows(std::int64_t size) {
  for (std::vector<std::byte>& message : messages_) message.clear();
  if (!ranks_.is_first()) append_rows(samples(size), messages_[0]);
  swap("activations to save");
  if (!ranks_.is_first()) return;
  for (std::int32_t host = 1; host < ranks_.hosts(); ++host)
    take_rows(samples_of(host, size), received_[host]);
}

void SharedBlocks::complete(std::int64_t samples, std::span<std::byte> values) {
  if (samples == 0) return;
  const std::size_t bytes = values.size() / static_cast<std::size_t>(samples);
  const auto for_each_part = [&](std::int32_t host, const auto& body) {
    for (std::int64_t first = 0; first < samples; first += batch_) {
      const Range part = computed_by(host, std::min(batch_, samples - first));
      body(values.subspan(static_cast<std::size_t>(first + part.begin) * bytes,
                          static_cast<std::size_t>(part.size()) * bytes));
    }
  };
  swap_values(for_each_part);
}

void SharedBlocks::divide(std::int64_t count, std::span<std::byte> values,
                          const Lookups::Compute& compute) {
  if (count == 0) return;
  const std::size_t bytes = values.size() / static_cast<std::size_t>(count);
  const auto range_of = [&](std::int32_t host) {
    return Range{count * host / ranks_.hosts(), count * (host + 1) / ranks_.hosts()};
  };
  const Range own = range_of(ranks_.host());
  compute(own.begin, own.size());
  swap_values([&](std::int32_t host, const auto& body) {
    const Range range = range_of(host);
    body(values.subspan(static_cast<std::size_t>(range.begin) * bytes,
                        static_cast<std::size_t>(range.size()) * bytes));
  });
}

/// Sends this process's parts of some values to all others, and takes theirs. `for_each_part` calls
/// back with each part of a host, in the same order on all processes.
template <class ForEachPart>
void SharedBlocks::swap_values(const ForEachPart& for_each_part) {
  to_all_.clear();
  for_each_part(ranks_.host(), [&](std::span<std::byte> part) {
    append(std::span<const std::byte>(part), to_all_);
  });
  std::fill(send_.begin(), send_.end(), ByteSpan(to_all_));
  swap_sent("measured values");
  for (std::int32_t host = 0; host < ranks_.hosts(); ++host) {
    if (host == ranks_.host()) continue;
    Cursor from(received_[host]);
    for_each_part(host, [&](std::span<std::byte> part) { take(from, part); });
  }
}

}  // namespace embertable::jobs
