#pragma once

namespace embertable {

/// Makes the calling thread round to nearest even and keep denormals while it lives. The destructor
/// restores the previous mode (frameworks leave flush-to-zero on in their threads).
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
