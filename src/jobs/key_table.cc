#include "jobs/key_table.h"

#include <algorithm>
#include <utility>

#include "embertable/errors.h"
#include "input/key_index.h"

namespace embertable::jobs {
namespace {

constexpr std::size_t kFirstSlots = 64;

}  // namespace

std::uint64_t KeyTable::hash_of_long(std::string_view key) noexcept { return input::hash_of(key); }

std::string_view KeyTable::operator[](std::int32_t number) const noexcept {
  const auto n = static_cast<std::size_t>(number);
  const std::uint64_t begin = n == 0 ? 0 : ends_[n - 1];
  return {bytes_.data() + begin, ends_[n] - begin};
}

KeyTable::Slot& KeyTable::slot_of_long(KeyHead head, std::string_view key,
                                       std::uint32_t tag) const noexcept {
  for (std::size_t place = tag & mask_;; place = (place + 1) & mask_) {
    Slot& slot = slots()[place];
    if (slot.number_plus_1 == 0) return slot;
    if (slot.tag != tag || slot.size != key.size() || slot.head != head) continue;
    if ((*this)[static_cast<std::int32_t>(slot.number_plus_1 - 1)] == key) return slot;
  }
}

std::int32_t KeyTable::insert(Slot& slot, KeyHead head, std::string_view key, std::uint32_t tag) {
  if (size() == kMaxKeys)
    throw ValueError("a vocabulary must have fewer than 2^31 keys, got one more");
  bytes_.append(key);
  ends_.push_back(bytes_.size());
  slot.tag = tag;
  slot.number_plus_1 = static_cast<std::uint32_t>(ends_.size());
  slot.size = static_cast<std::uint32_t>(key.size());
  slot.head = head;
  return size() - 1;
}

/// A slot's tag says where it goes, whatever the size.
void KeyTable::grow() {
  const std::size_t count = std::max(kFirstSlots, num_slots_ * 2);
  const Mapping old =
      std::exchange(memory_, Mapping(static_cast<std::int64_t>(count * sizeof(Slot))));
  const std::size_t old_count = std::exchange(num_slots_, count);
  mask_ = count - 1;
  const Slot* const old_slots = reinterpret_cast<const Slot*>(old.data());
  for (std::size_t i = 0; i < old_count; ++i) {
    if (old_slots[i].number_plus_1 == 0) continue;
    std::size_t place = old_slots[i].tag & mask_;
    while (slots()[place].number_plus_1 != 0) place = (place + 1) & mask_;
    slots()[place] = old_slots[i];
  }
}

std::vector<std::uint32_t> KeyTable::seen() const {
  std::vector<std::uint32_t> counts(ends_.size());
  for (std::size_t i = 0; i < num_slots_; ++i) {
    const Slot& slot = slots()[i];
    if (slot.number_plus_1 != 0) counts[slot.number_plus_1 - 1] = slot.seen;
  }
  return counts;
}

}  // namespace embertable::jobs
