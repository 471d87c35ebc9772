#include "variable/row_addresses.h"

#include <numeric>

#include "base/read_once.h"

namespace embertable {
namespace {

std::uintptr_t address(const std::byte* p) { return reinterpret_cast<std::uintptr_t>(p); }

template <class Id>
const Id* typed(const RowIndices& indices, std::int64_t first) {
  return reinterpret_cast<const Id*>(indices.data) + first;
}

}  // namespace

RowAddresses::RowAddresses(const RowLocator& locator, std::span<const RowBlockPlace> places)
    : locator_(locator), lines_(places.size()) {
  for (const RowBlockPlace& place : places)
    if (place.rows > 0 && (base_ == nullptr || address(place.data) < address(base_)))
      base_ = place.data;
  std::uint64_t unit = 0;
  for (const RowBlockPlace& place : places) {
    if (place.rows > 0) unit = std::gcd(unit, address(place.data) - address(base_));
    if (place.rows > 1) unit = std::gcd(unit, static_cast<std::uint64_t>(place.stride));
  }
  if (unit == 0) return;  // every row is at base
  unit_ = static_cast<std::int64_t>(unit);
  for (std::size_t b = 0; b < places.size(); ++b) {
    if (places[b].rows == 0) continue;
    Line& line = lines_[b];
    line.scale = places[b].rows == 1 ? 0 : static_cast<std::uint64_t>(places[b].stride) / unit;
    line.start = (address(places[b].data) - address(base_)) / unit -
                 static_cast<std::uint64_t>(locator.offsets()[b]) * line.scale;
  }
}

bool RowAddresses::numbers(const RowIndices& indices, std::int64_t first, std::int64_t count,
                           std::uint64_t* number) const noexcept {
  const std::uint64_t last = static_cast<std::uint64_t>(rows()) - 1;
  bool all = true;
  const auto fill = [&](const auto* id) {
    for (std::int64_t i = 0; i < count; ++i) {
      auto row = static_cast<std::uint64_t>(std::int64_t{read_once(id[i])});
      const bool inside = row <= last;
      all = all && inside;
      row = inside ? row : 0;
      const Line& line = lines_[locator_.block(static_cast<std::int64_t>(row))];
      number[i] = line.start + row * line.scale;
    }
  };
  indices.wide ? fill(typed<std::int64_t>(indices, first))
               : fill(typed<std::int32_t>(indices, first));
  return all;
}

}  // namespace embertable
