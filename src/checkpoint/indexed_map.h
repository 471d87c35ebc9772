#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <unordered_map>
#include <utility>

namespace embertable::checkpoint {

/// The members of a JSON object in the order in which they were written. nlohmann's ordered_map
/// searches all members for each new one, which would take hours for an object of a million members
/// in a hostile file.
template <class Key, class T, class IgnoredLess = std::less<Key>,
          class Allocator = std::allocator<std::pair<const Key, T>>>
struct IndexedMap : nlohmann::ordered_map<Key, T, IgnoredLess, Allocator> {
  using Base = nlohmann::ordered_map<Key, T, IgnoredLess, Allocator>;
  using Base::Base;
  using typename Base::const_iterator;
  using typename Base::Container;
  using typename Base::iterator;

  std::pair<iterator, bool> emplace(const Key& key, T&& value) {
    if (this->size() < kSearched) return Base::emplace(key, std::move(value));
    for (; indexed_ < this->size(); ++indexed_) place_.emplace(member(indexed_).first, indexed_);
    const auto [found, is_new] = place_.emplace(key, this->size());
    if (is_new) {
      Container::emplace_back(key, std::move(value));
      ++indexed_;
    }
    return {this->begin() + static_cast<std::ptrdiff_t>(found->second), is_new};
  }

  T& operator[](const Key& key) { return emplace(key, T{}).first->second; }
  const T& operator[](const Key& key) const { return this->at(key); }

  iterator erase(iterator at) {
    place_.clear();
    indexed_ = 0;
    return Base::erase(at);
  }

 private:
  static constexpr std::size_t kSearched = 32;  ///< smaller objects are searched linearly

  auto& member(std::size_t index) { return Container::operator[](index); }

  std::unordered_map<Key, std::size_t> place_;
  std::size_t indexed_ = 0;  ///< members that are in place_
};

}  // namespace embertable::checkpoint
