#include "engine/intake/feed.h"

#include <string>

#include "embertable/errors.h"

namespace embertable::engine {
namespace {

/// Source: TF tpu_embedding_ops, mode_override; "training" as its documentation has it.
bool is_training_mode(const std::string& mode) {
  if (mode == "train" || mode == "training" || mode == "unspecified") return true;
  if (mode == "inference") return false;
  throw ValueError(
      "enqueue: mode_override must be 'train', 'training', 'inference' or 'unspecified', got '" +
      mode + "'");
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

Feed make_feed(const Setup& setup, std::span<const Batch> batches, const EnqueueOptions& options,
               std::optional<std::int32_t> replica) {
  const std::string &device = options.device, &mode = options.mode_override;
  if (replica && !device.empty())
    throw ValueError("enqueue: a replica's own call has no device, got '" + device + "'");
  Feed feed = {.batches = batches,
               .cores = {0, setup.cores},
               .cores_per_replica = setup.cores_per_replica,
               .cut = setup.cores_per_replica > 1,
               .training = mode.empty() ? options.training : is_training_mode(mode),
               .name = options.name,
               .timeout = Schedule::checked_timeout("enqueue", options.timeout)};
  if (!device.empty()) choose_device(feed, setup, device);
  if (replica) {
    const std::int32_t first = *replica * setup.cores_per_replica;
    feed.cores = {first, first + setup.cores_per_replica};
  }
  return feed;
}

}  // namespace embertable::engine
