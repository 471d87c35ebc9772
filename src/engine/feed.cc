#include "engine/feed.h"

#include <string>

#include "embertable/errors.h"

namespace embertable::engine {
namespace {

/// Source: TF tpu_embedding_ops, mode_override; "training" as its documentation has it.
bool is_training_mode(const std::string& mode) {
  if (mode == "train" || mode == "training" || mode == "unspecified") return true;
  if (mode == "inference") return false;
  throw DataError(
      "enqueue: mode_override must be 'train', 'training', 'inference' or 'unspecified', got '" +
          mode + "'",
      {});
}

void take_options(Feed& feed, const EnqueueOptions& options) {
  feed.training =
      options.mode_override.empty() ? options.training : is_training_mode(options.mode_override);
  feed.name = options.name;
  feed.timeout = Schedule::checked_timeout("enqueue", options.timeout);
}

void choose_device(Feed& feed, const Setup& setup, const std::string& device) {
  const std::int32_t core =
      setup.strategy->core_of(device) - setup.strategy->first_replica() * setup.cores_per_replica;
  if (core < 0 || core >= setup.cores) {
    throw ValueError("enqueue: the device must be of this process, host " +
                     std::to_string(setup.first_host) + ", got '" + device + "'");
  }
  feed.cores = {core, core + 1};
  feed.cut = false;
  if (feed.batches.size() != 1) {
    throw ValueError("enqueue: there must be one batch for device '" + device + "', got " +
                     std::to_string(feed.batches.size()));
  }
}

}  // namespace

Feed feed_all(const Setup& setup, std::span<const Batch> batches, bool training) {
  return {.batches = batches,
          .cores = {0, setup.cores},
          .cores_per_replica = setup.cores_per_replica,
          .cut = setup.cores_per_replica > 1,
          .training = training};
}

Feed feed_by_options(const Setup& setup, std::span<const Batch> batches,
                     const EnqueueOptions& options) {
  Feed feed = feed_all(setup, batches, options.training);
  take_options(feed, options);
  if (!options.device.empty()) choose_device(feed, setup, options.device);
  return feed;
}

Feed feed_replica(const Setup& setup, std::int32_t replica, const Batch& batch,
                  const EnqueueOptions& options) {
  if (!options.device.empty()) {
    throw ValueError("enqueue: a replica's own call has no device, got '" + options.device + "'");
  }
  Feed feed = feed_all(setup, std::span(&batch, 1), options.training);
  take_options(feed, options);
  const std::int32_t first = replica * setup.cores_per_replica;
  feed.cores = {first, first + setup.cores_per_replica};
  return feed;
}

}  // namespace embertable::engine
