#include "apps/jobs/keys/vocabulary.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "input/key_index.h"

namespace embertable::jobs {

Vocabulary::Vocabulary(const IdMap& map)
    : kind_(map.kind()), shared_rows_(map.out_of_vocabulary_rows()) {
  for (std::int64_t row = 0; row < map.num_keys(); ++row) {
    kind_ == KeyKind::kInteger ? add(map.integer_key(row)) : add(map.string_key(row));
  }
}

std::int64_t Vocabulary::integer(std::int32_t id) const noexcept {
  std::int64_t key = 0;
  std::memcpy(&key, keys_[id].data(), sizeof(key));
  return key;
}

std::string Vocabulary::shown(std::int32_t id) const {
  return kind_ == KeyKind::kInteger ? std::to_string(integer(id)) : std::string(text(id));
}

std::int64_t Vocabulary::shared_row(std::string_view key) const noexcept {
  __extension__ using Wide = unsigned __int128;
  const Wide wide = Wide{input::hash_of(key)} * static_cast<std::uint64_t>(shared_rows_);
  return size() + static_cast<std::int64_t>(wide >> 64);
}

IdMap Vocabulary::id_map() const {
  IdMapBuilder builder(kind_);
  for (std::int32_t id = 0; id < size(); ++id) {
    kind_ == KeyKind::kInteger ? builder.add(integer(id)) : builder.add(text(id));
  }
  return builder.build({.out_of_vocabulary_rows = shared_rows_});
}

std::vector<std::int32_t> Vocabulary::keep(std::int64_t min_count) {
  const std::vector<std::uint32_t> seen = keys_.seen();
  std::vector<std::int32_t> kept;
  for (std::int32_t id = 0; id < size(); ++id) {
    if (seen[id] >= min_count) kept.push_back(id);
  }
  return renumber(kept);
}

std::vector<std::int32_t> Vocabulary::sort() {
  std::vector<std::int32_t> ids(size());
  std::iota(ids.begin(), ids.end(), 0);
  std::sort(ids.begin(), ids.end(), [this](std::int32_t a, std::int32_t b) {
    return kind_ == KeyKind::kInteger ? integer(a) < integer(b) : text(a) < text(b);
  });
  return renumber(ids);
}

/// Keeps these keys, in this order. Returns the new number of each old one, or -1.
std::vector<std::int32_t> Vocabulary::renumber(const std::vector<std::int32_t>& old_ids) {
  std::vector<std::int32_t> new_id(size(), -1);
  KeyTable keys;
  for (const std::int32_t id : old_ids)
    new_id[id] = keys.add(keys_[id], KeyTable::hash(keys_[id]), 0);
  keys_ = std::move(keys);
  return new_id;
}

}  // namespace embertable::jobs
