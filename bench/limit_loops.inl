// The loops of limit_kernels.h, for whatever vectors the surrounding region has.

typedef float Vector __attribute__((vector_size(64)));
typedef float LooseVector __attribute__((vector_size(64), aligned(4), may_alias));

/// Sums side by side: enough that additions do not wait for each other, few enough for the
/// registers of plain x86-64.
constexpr int kSums = 4;

inline std::size_t part_begin(const std::size_t* first, std::size_t t, std::size_t worker,
                              std::size_t workers) {
  return first[t] + (first[t + 1] - first[t]) * worker / workers;
}

template <int kDim, int kWrite>
inline __attribute__((always_inline)) void prefetch_row(const float* row) {
  for (int line = 0; line < kDim / 16; ++line) __builtin_prefetch(row + line * 16, kWrite, 3);
}

/// Depends on every lane, so that nothing that was read is dropped.
inline float all_lanes(const Vector& x) {
  float total = 0;
  for (int lane = 0; lane < 16; ++lane) total += x[lane];
  return total;
}

template <int kDim>
float gather_rows(const GatherPart& part) {
  Vector sums[kSums] = {};
  const std::size_t ids = part.first[part.tables];
  const std::size_t ids_per_out =
      part.out == nullptr ? ids + 1 : (ids + part.out_rows - 1) / part.out_rows;
  std::size_t until_out = ids_per_out;
  float* out = part.out + part.out_rows * part.worker / part.workers * kDim;
  const float* const out_end = part.out + part.out_rows * (part.worker + 1) / part.workers * kDim;

  for (std::size_t t = 0; t < part.tables; ++t) {
    const float* const rows = part.rows[t];
    const std::size_t begin = part_begin(part.first, t, part.worker, part.workers);
    const std::size_t end = part_begin(part.first, t, part.worker + 1, part.workers);
    const bool has_next = t + 1 < part.tables;
    const std::size_t next =
        has_next ? part_begin(part.first, t + 1, part.worker, part.workers) : 0;
    const std::size_t next_end =
        has_next ? part_begin(part.first, t + 1, part.worker + 1, part.workers) : 0;
    for (std::size_t i = begin; i < end; ++i) {
      const std::size_t ahead = i + part.distance;
      if (ahead < end) {
        prefetch_row<kDim, 0>(rows + static_cast<std::size_t>(part.ids[ahead]) * kDim);
      } else if (next + (ahead - end) < next_end) {
        prefetch_row<kDim, 0>(part.rows[t + 1] +
                              static_cast<std::size_t>(part.ids[next + (ahead - end)]) * kDim);
      }
      const float* const row = rows + static_cast<std::size_t>(part.ids[i]) * kDim;
      for (int v = 0; v < kDim / 16; ++v) {
        sums[v % kSums] += *reinterpret_cast<const LooseVector*>(row + v * 16);
      }
      if (--until_out != 0) continue;
      until_out = ids_per_out;
      if (out >= out_end) continue;
      for (int v = 0; v < kDim / 16; ++v, out += 16) {
        *reinterpret_cast<LooseVector*>(out) = sums[v % kSums];
      }
    }
  }
  return all_lanes((sums[0] + sums[1]) + (sums[2] + sums[3]));
}

template <int kDim, bool kAll>
float update_part(const UpdatePart& part) {
  Vector change = {};
  change += 1e-12f;
  Vector read = {};
  const std::size_t named = part.first[part.tables];
  const std::size_t gradient_begin = part.gradient_rows * part.worker / part.workers;
  const std::size_t gradient_end = part.gradient_rows * (part.worker + 1) / part.workers;
  const std::size_t gradients = gradient_end - gradient_begin;
  const float* const first_gradient = part.gradients + gradient_begin * kDim;
  const float* gradient = first_gradient;
  std::size_t done = 0;

  for (std::size_t t = 0; t < part.tables; ++t) {
    float* const rows = part.rows[t];
    const std::size_t begin = part_begin(part.first, t, part.worker, part.workers);
    const std::size_t end = part_begin(part.first, t, part.worker + 1, part.workers);
    const bool has_next = t + 1 < part.tables;
    const std::size_t next =
        has_next ? part_begin(part.first, t + 1, part.worker, part.workers) : 0;
    const std::size_t next_end =
        has_next ? part_begin(part.first, t + 1, part.worker + 1, part.workers) : 0;
    for (std::size_t i = begin; i < end; ++i) {
      const std::size_t ahead = i + part.distance;
      if (ahead < end) {
        const std::size_t r = part.named[ahead];
        prefetch_row<kDim, 1>(rows + r * kDim);
        if (kAll) __builtin_prefetch(part.slots[t] + r, 1, 3);
      } else if (next + (ahead - end) < next_end) {
        const std::size_t r = part.named[next + (ahead - end)];
        prefetch_row<kDim, 1>(part.rows[t + 1] + r * kDim);
        if (kAll) __builtin_prefetch(part.slots[t + 1] + r, 1, 3);
      }
      const std::size_t r = part.named[i];
      if (kAll) {
        part.slots[t][r] += 1e-12f;
        ++done;
        const std::size_t due = done * part.workers * gradients / named + 1;
        const float* const until = first_gradient + (due < gradients ? due : gradients) * kDim;
        for (; gradient < until; gradient += 16) {
          read += *reinterpret_cast<const LooseVector*>(gradient);
        }
      }
      for (int v = 0; v < kDim / 16; ++v) {
        *reinterpret_cast<LooseVector*>(rows + r * kDim + v * 16) += change;
      }
    }
  }
  return all_lanes(read);
}

template <int kDim>
float update_rows(const UpdatePart& part) {
  return part.slots == nullptr ? update_part<kDim, false>(part) : update_part<kDim, true>(part);
}

template <int kDim>
constexpr LimitKernels kKernels = {.gather = gather_rows<kDim>, .update = update_rows<kDim>};
