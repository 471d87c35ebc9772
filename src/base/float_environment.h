#pragma once

namespace embertable {

/// While it lives, the calling thread computes as the library promises: round to nearest even,
/// denormals kept. Restores what it found (frameworks leave flush-to-zero on in their threads).
class FloatEnvironment {
 public:
  FloatEnvironment() noexcept;
  ~FloatEnvironment();
  FloatEnvironment(const FloatEnvironment&) = delete;
  FloatEnvironment& operator=(const FloatEnvironment&) = delete;

 private:
  unsigned int found_;
  unsigned int ours_;
};

}  // namespace embertable
