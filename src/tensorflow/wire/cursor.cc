#include "tensorflow/wire/cursor.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <limits>
#include <protozero/varint.hpp>

#include "embertable/errors.h"

namespace embertable::wire {
namespace {

/// Maximum group nesting; protobuf's own limit.
constexpr std::size_t kMaxOpenGroups = 100;

template <class Number>
Number little_endian(const char* at) {
  static_assert(std::endian::native == std::endian::little);
  Number number;
  std::memcpy(&number, at, sizeof number);
  return number;
}

}  // namespace

void Input::refuse(const char* at, const std::string& rule) const {
  std::string subject(message);
  for (const std::string_view field : fields) subject.append(".").append(field);
  throw ValueError(fmt::format("{}, byte {}: {}", subject, at - bytes.data(), rule));
}

const char* Cursor::take(std::uint64_t count) {
  const auto left = static_cast<std::uint64_t>(end_ - at_);
  if (count > left) input_.refuse(at_, fmt::format("{} bytes must follow, got {}", count, left));
  const char* taken = at_;
  at_ += count;
  return taken;
}

std::uint64_t Cursor::varint() {
  const char* start = at_;
  try {
    return protozero::decode_varint(&at_, end_);
  } catch (const protozero::exception&) {
    input_.refuse(start, start == end_ ? "a number must follow, got the end"
                                       : "a number must end within 10 bytes and the message");
  }
}

std::uint32_t Cursor::fixed32() { return little_endian<std::uint32_t>(take(4)); }
std::uint64_t Cursor::fixed64() { return little_endian<std::uint64_t>(take(8)); }

std::string_view Cursor::bytes() {
  const std::uint64_t length = varint();
  const char* start = take(length);
  return {start, static_cast<std::size_t>(length)};
}

Tag Cursor::tag() {
  const char* start = at_;
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
      take(8);
      return;
    case WireType::kBytes:
      bytes();
      return;
    case WireType::kFixed32:
      take(4);
      return;
    case WireType::kStartGroup:
      return skip_group(tag.number);
    case WireType::kEndGroup:
      input_.refuse(at_, fmt::format("group {} ends without a start", tag.number));
  }
}

void Cursor::skip_group(std::uint32_t number) {
  std::vector<std::uint32_t> open = {number};
  while (!open.empty()) {
    const char* start = at_;
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
