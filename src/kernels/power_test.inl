#include "kernels/power.inl"

/// Computes out[i] from x[i] and y[i], or from x[i] alone; count is a multiple of 16.
inline void run_pow(const float* x, const float* y, float* out, std::int64_t count) {
  for (std::int64_t i = 0; i < count; i += 16) store(out + i, pow(load(x + i), load(y + i)));
}
inline void run_exp(const float* x, const float*, float* out, std::int64_t count) {
  for (std::int64_t i = 0; i < count; i += 16) store(out + i, exp(load(x + i)));
}
inline void run_log(const float* x, const float*, float* out, std::int64_t count) {
  for (std::int64_t i = 0; i < count; i += 16) store(out + i, log(load(x + i)));
}

inline void run_power(const float* x, float p, float* out) { store(out, Power(p)(load(x))); }
