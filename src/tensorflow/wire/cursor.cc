#include "tensorflow/wire/cursor.h"

#include <fmt/format.h>

#include <limits>
#include <protozero/varint.hpp>

#include "embertable/errors.h"

namespace embertable::wire {
namespace {

/// Maximum group nesting; protobuf's own limit.
constexpr std::size_t kMaxOpenGroups = 100;

}  // namespace

void Input::refuse(const char* at, const std::string& rule) const {
  std::string subject(message);
  for (const std::string_view field : fields) subject.append(".").append(field);
  throw ValueError(fmt::format("{}, byte {}: {}", subject, at - bytes.data(), rule));
}

void Cursor::require(std::uint64_t count) const {
  if (!bytes_.holds(count))
    input_.refuse(at(), fmt::format("{} bytes must follow, got {}", count, bytes_.left()));
}

std::uint64_t Cursor::varint() {
  const char* next = at();
  try {
    const std::uint64_t number = protozero::decode_varint(&next, at() + bytes_.left());
    bytes_.take(next - at());
    return number;
  } catch (const protozero::exception&) {
    input_.refuse(at(), at_end() ? "a number must follow, got the end"
                                 : "a number must end within 10 bytes and the message");
  }
}

std::uint32_t Cursor::fixed32() {
  require(4);
  return bytes_.number<std::uint32_t>();
}

std::uint64_t Cursor::fixed64() {
  require(8);
  return bytes_.number<std::uint64_t>();
}

std::string_view Cursor::bytes() {
  const std::uint64_t length = varint();
  require(length);
  return bytes_.text(length);
}

Tag Cursor::tag() {
  const char* start = at();
  const std::uint64_t number = varint();
  const auto type = static_cast<std::uint8_t>(number & 7);
  if (number > std::numeric_limits<std::uint32_t>::max() || number >> 3 == 0)
    input_.refuse(
        start, fmt::format("a field's number must be 1..{}, got {}", (1 << 29) - 1, number >> 3));
  if (type > static_cast<std::uint8_t>(WireType::kFixed32))
    input_.refuse(start, fmt::format("a wire type must be 0..5, got {}", type));
  return {static_cast<std::uint32_t>(number >> 3), static_cast<WireType>(type)};
}

void Cursor::skip(Tag tag) {
  switch (tag.type) {
    case WireType::kVarint:
      varint();
      return;
    case WireType::kFixed64:
      fixed64();
      return;
    case WireType::kBytes:
      bytes();
      return;
    case WireType::kFixed32:
      fixed32();
      return;
    case WireType::kStartGroup:
      return skip_group(tag.number);
    case WireType::kEndGroup:
      input_.refuse(at(), fmt::format("group {} ends without a start", tag.number));
  }
}

void Cursor::skip_group(std::uint32_t number) {
  std::vector<std::uint32_t> open = {number};
  while (!open.empty()) {
    const char* start = at();
    const Tag inner = tag();
    if (inner.type == WireType::kStartGroup) {
      if (open.size() == kMaxOpenGroups)
        input_.refuse(start, fmt::format("at most {} groups may be open", kMaxOpenGroups));
      open.push_back(inner.number);
    } else if (inner.type == WireType::kEndGroup) {
      if (inner.number != open.back())
        input_.refuse(start, fmt::format("group {} must end, got the end of group {}", open.back(),
                                         inner.number));
      open.pop_back();
    } else {
      skip(inner);
    }
  }
}

}  // namespace embertable::wire
