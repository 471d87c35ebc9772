// The loops of record_loops.h. Part of a level body: see kernels/for_each_level.inl.

EMBERTABLE_INLINE void prefetch_record(const bench::RecordPart& part, std::size_t i) {
  const std::size_t r = part.rows[i];
  const float* record = part.records + r * part.floats;
  for (std::size_t c = 0; c < part.floats; c += 16) __builtin_prefetch(record + c, 1, 3);
  for (std::size_t s = 0; s < part.num_row_slots; ++s)
    __builtin_prefetch(part.row_slots[s] + r, 1, 3);
}

inline float update_records(const bench::RecordPart& part) {
  const F16 change = set1(1e-12f);
  F16 read = zero16();
  for (std::size_t i = 0; i < part.distance && i < part.count; ++i) prefetch_record(part, i);
  for (std::size_t i = 0; i < part.count; ++i) {
    if (i + part.distance < part.count) prefetch_record(part, i + part.distance);
    const std::size_t r = part.rows[i];
    float* record = part.records + r * part.floats;
    for (std::size_t c = 0; c < part.floats; c += 16) store(record + c, load(record + c) + change);
    for (std::size_t s = 0; s < part.num_row_slots; ++s) part.row_slots[s][r] += 1e-12f;
    if (part.gradients == nullptr) continue;
    const float* gradient = part.gradients + i * part.gradient_floats;
    for (std::size_t c = 0; c < part.gradient_floats; c += 16) read = read + load(gradient + c);
  }
  return sum16(read);
}

inline float divide(const float* numbers, std::size_t floats, int divisions, int roots) {
  F16 sum[4] = {zero16(), zero16(), zero16(), zero16()};
  for (std::size_t i = 0; i < floats; i += 16) {
    const F16 x = load(numbers + i);
    for (int k = 0; k < divisions; ++k)
      sum[k % 4] = sum[k % 4] + set1(static_cast<float>(k + 1)) / x;
    for (int k = 0; k < roots; ++k) sum[k % 4] = sum[k % 4] + sqrt(x + set1(static_cast<float>(k)));
  }
  return sum16((sum[0] + sum[1]) + (sum[2] + sum[3]));
}
