#include "engine/activation_buffer.h"

#include <utility>

#include "embertable/embedding.h"

namespace embertable {
namespace engine {

LentBuffer ActivationPool::lend(std::span<const Shape> shape) {
  LentBuffer buffer;
  {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) add_buffer();
    buffer.reset(free_.back());
    free_.pop_back();
    buffer->pool = shared_from_this();
  }
  buffer->holders = 1;
  buffer->memory.reset();
  buffer->shape.assign(shape.begin(), shape.end());
  buffer->values.clear();
  for (const Shape& one : shape)
    buffer->values.push_back(buffer->memory.take<float>(one.num_elements()));
  return buffer;
}

void ActivationPool::add_buffer() {
  all_.push_back(std::make_unique<ActivationBuffer>(structure_));
  free_.reserve(all_.size());
  free_.push_back(all_.back().get());
}

/// In a forked process the buffer stays lent: another thread of the parent may have held the lock.
void GiveBack::operator()(ActivationBuffer* buffer) const noexcept {
  if (buffer->pool->home_.forked()) return;
  const std::shared_ptr<ActivationPool> pool = std::move(buffer->pool);
  const std::lock_guard lock(pool->mutex_);
  pool->free_.push_back(buffer);  // capacity for all buffers is reserved
}

std::int64_t ActivationPool::bytes() const {
  const std::lock_guard lock(mutex_);
  std::int64_t bytes = 0;
  for (const auto& buffer : all_) bytes += buffer->memory.bytes();
  return bytes;
}

}  // namespace engine

Activations::Activations(const Activations& other) noexcept
    : buffer_(other.buffer_), first_replica_(other.first_replica_), replicas_(other.replicas_) {
  if (buffer_) buffer_->holders.fetch_add(1, std::memory_order_relaxed);
}

Activations::Activations(Activations&& other) noexcept
    : buffer_(std::exchange(other.buffer_, nullptr)),
      first_replica_(other.first_replica_),
      replicas_(other.replicas_) {}

Activations& Activations::operator=(Activations other) noexcept {
  std::swap(buffer_, other.buffer_);
  std::swap(first_replica_, other.first_replica_);
  std::swap(replicas_, other.replicas_);
  return *this;
}

Activations::~Activations() {
  if (buffer_ && buffer_->holders.fetch_sub(1, std::memory_order_acq_rel) == 1)
    engine::GiveBack()(buffer_);
}

const Structure& Activations::structure() const noexcept {
  static const Structure none = Structure::list({});
  return buffer_ ? buffer_->structure : none;
}

std::int64_t Activations::features() const noexcept {
  return buffer_ ? buffer_->structure.num_leaves() : 0;
}

std::int32_t Activations::replicas() const noexcept { return buffer_ ? replicas_ : 0; }

Activation Activations::operator()(std::int64_t feature, std::int32_t replica) const noexcept {
  const std::int64_t at = (first_replica_ + replica) * features() + feature;
  return {buffer_->values[at], buffer_->shape[at]};
}

Activation Activations::operator()(std::string_view path, std::int32_t replica) const {
  return (*this)(structure().index_of(path), replica);
}

Nested<Activation> Activations::nested(std::int32_t replica) const {
  std::vector<Activation> leaves;
  for (std::int64_t feature = 0; feature < features(); ++feature)
    leaves.push_back((*this)(feature, replica));
  return Nested<Activation>(structure(), std::move(leaves));
}

}  // namespace embertable
