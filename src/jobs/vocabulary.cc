#include "jobs/vocabulary.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "embertable/errors.h"

namespace embertable::jobs {

std::int32_t Vocabulary::next() {
  if (size_ == std::numeric_limits<std::int32_t>::max()) {
    throw ValueError("a vocabulary must have fewer than 2^31 keys, got one more");
  }
  return size_;
}

std::int32_t Vocabulary::add(std::int64_t key) {
  const auto [place, is_new] = of_integer_.try_emplace(key, next());
  if (is_new) {
    integers_.push_back(key);
    ++size_;
  }
  return place->second;
}

std::int32_t Vocabulary::add(std::string_view key) {
  const auto place = of_text_.find(key);
  if (place != of_text_.end()) return place->second;
  const std::int32_t id = next();
  of_text_.emplace(key, id);
  texts_.emplace_back(key);
  ++size_;
  return id;
}

std::int32_t Vocabulary::find(std::int64_t key) const noexcept {
  const auto place = of_integer_.find(key);
  return place == of_integer_.end() ? -1 : place->second;
}

std::int32_t Vocabulary::find(std::string_view key) const noexcept {
  const auto place = of_text_.find(key);
  return place == of_text_.end() ? -1 : place->second;
}

std::string Vocabulary::shown(std::int32_t id) const {
  return kind_ == KeyKind::kInteger ? std::to_string(integer(id)) : text(id);
}

IdMap Vocabulary::id_map() const {
  IdMapBuilder builder(kind_);
  for (const std::int64_t key : integers_) builder.add(key);
  for (const std::string& key : texts_) builder.add(std::string_view(key));
  return builder.build();
}

std::vector<std::int32_t> Vocabulary::sort() {
  std::vector<std::int32_t> old_id(static_cast<std::size_t>(size_));
  std::iota(old_id.begin(), old_id.end(), 0);
  std::sort(old_id.begin(), old_id.end(), [this](std::int32_t a, std::int32_t b) {
    return kind_ == KeyKind::kInteger ? integer(a) < integer(b) : text(a) < text(b);
  });
  std::vector<std::int32_t> new_id(old_id.size());
  Vocabulary sorted(kind_);
  for (const std::int32_t id : old_id) {
    new_id[static_cast<std::size_t>(id)] =
        kind_ == KeyKind::kInteger ? sorted.add(integer(id)) : sorted.add(text(id));
  }
  *this = std::move(sorted);
  return new_id;
}

}  // namespace embertable::jobs
