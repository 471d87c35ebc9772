#include "checkpoint/summed_file.h"

#include <algorithm>
#include <cstring>

#include "base/byte_watch.h"
#include "base/interruption.h"

namespace embertable::checkpoint {

void SummedFile::send(std::span<std::byte> chunk, std::size_t bytes) {
  Interruption::ask();
  sum(chunk.first(bytes));
  file_.send(bytes);
  ByteWatch::done(static_cast<std::int64_t>(bytes));
}

void SummedFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const std::span<std::byte> memory = chunk();
    const std::size_t count = std::min(memory.size(), bytes.size());
    std::memcpy(memory.data(), bytes.data(), count);
    send(memory, count);
    bytes = bytes.subspan(count);
  }
}

void SummedFile::sum(std::span<const std::byte> bytes) {
  all_.update(bytes);
  while (!bytes.empty()) {
    const auto room = static_cast<std::size_t>(kBlockBytes - bytes_ % kBlockBytes);
    const std::span<const std::byte> part = bytes.first(std::min(room, bytes.size()));
    block_.update(part);
    bytes_ += static_cast<std::int64_t>(part.size());
    if (part.size() == room) blocks_ += block_.hex(), block_.reset();
    bytes = bytes.subspan(part.size());
  }
}

FileRecord SummedFile::finish() {
  if (bytes_ % kBlockBytes != 0) blocks_ += block_.hex();
  file_.finish();
  return {.bytes = bytes_, .xxh128 = all_.hex(), .blocks_xxh128 = blocks_};
}

}  // namespace embertable::checkpoint
