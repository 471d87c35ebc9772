#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <random>
#include <vector>

namespace embertable::engine_fixture {

/// Throws that a seed decides, the same with every standard library but for `shuffle`.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : engine_(seed) {}
  std::int64_t between(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(engine_() % static_cast<std::uint64_t>(high - low + 1));
  }
  bool chance(int percent) { return between(1, 100) <= percent; }
  double unit() { return static_cast<double>(between(-4096, 4096)) / 4096; }
  template <class T>
  T pick(std::initializer_list<T> of) {
    return of.begin()[between(0, static_cast<std::int64_t>(of.size()) - 1)];
  }
  template <class T>
  void shuffle(std::vector<T>& all) {
    std::ranges::shuffle(all, engine_);
  }

 private:
  std::mt19937_64 engine_;
};

}  // namespace embertable::engine_fixture
