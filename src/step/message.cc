#include "step/message.h"

#include <algorithm>

#include "embertable/errors.h"

namespace embertable {

void MessageReader::refuse(const std::string& rule) const {
  const auto place = std::to_string(message_.size() - bytes_.left());
  throw IoError("host " + std::to_string(host_) + ": " + to_string(stage_) + ": " + rule +
                ", at byte " + place + " of " + std::to_string(message_.size()));
}

void MessageReader::refuse_length(std::int64_t count, std::size_t bytes) const {
  refuse("the message must hold " + std::to_string(count) + " numbers of " + std::to_string(bytes) +
         " bytes more, got " + std::to_string(bytes_.left()) + " bytes");
}

void MessageReader::refuse_number(std::int64_t number, std::int64_t most) const {
  refuse("a number must be 0.." + std::to_string(most) + ", got " + std::to_string(number));
}

void MessageReader::refuse_index(std::span<const std::uint64_t> numbers, std::int64_t limit) const {
  refuse("an index must be 0 <= index < " + std::to_string(limit) + ", got " +
         std::to_string(std::ranges::max(numbers)));
}

void MessageReader::refuse_rest() const {
  refuse("the message must end, got " + std::to_string(bytes_.left()) + " bytes more");
}

}  // namespace embertable
