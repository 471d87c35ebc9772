// Brings rows and slots near before they are updated. Part of a level body: see for_each_level.inl.

/// Rows between a row's prefetch and its use.
inline constexpr std::int64_t kRowsAhead = 16;

/// Brings a row and its slots near. Slots in the row's record come with it.
struct RowPrefetch {
  float* row;
  std::int64_t stride;
  int lines;  ///< of the record
  int apart;  ///< slots outside of it
  float* slot[kMaxSlots];
  std::int64_t slot_stride[kMaxSlots];
  int slot_lines[kMaxSlots];

  explicit RowPrefetch(const RowBlock& rows) : row(rows.row), stride(rows.stride), lines(0), apart(0) {
    std::int64_t record = rows.dim;
    for (int s = 0; s < rows.slots; ++s) {
      const auto offset = (reinterpret_cast<std::intptr_t>(rows.slot[s]) -
                           reinterpret_cast<std::intptr_t>(rows.row)) / static_cast<std::intptr_t>(sizeof(float));
      if (rows.slot_stride[s] == rows.stride && offset >= 0 && offset + rows.dim <= rows.stride) {
        if (offset + rows.dim > record) record = offset + rows.dim;
        continue;
      }
      slot[apart] = rows.slot[s];
      slot_stride[apart] = rows.slot_stride[s];
      const std::int64_t width = rows.slot_stride[s] < rows.dim ? rows.slot_stride[s] : rows.dim;
      slot_lines[apart++] = width == 1 ? 1 : lines_of(rows.slot[s], rows.slot_stride[s] * 4, width * 4);
    }
    lines = lines_of(row, stride * 4, record * 4);
  }

  /// Of one row, by whole lines.
  std::int64_t bytes() const {
    std::int64_t all = lines;
    for (int s = 0; s < apart; ++s) all += slot_lines[s];
    return all * 64;
  }

  EMBERTABLE_INLINE void operator()(std::uint64_t r) const {
    const auto i = static_cast<std::int64_t>(r);
    prefetch_write(row + i * stride, lines);
    for (int s = 0; s < apart; ++s) prefetch_write(slot[s] + i * slot_stride[s], slot_lines[s]);
  }

  /// Of several rows.
  template <class Index>
  [[gnu::noinline]] void all(const Index* rows, std::int64_t count) const {
    asm volatile("");  // a function that only prefetches has no effect that gcc knows of: calls would go
    const RowPrefetch prefetch = *this;
    if (prefetch.apart == 1 && prefetch.slot_lines[0] == 1) {
      float* const only = prefetch.slot[0];
      const std::int64_t only_stride = prefetch.slot_stride[0];
      for (std::int64_t k = 0; k < count; ++k) {
        const auto i = static_cast<std::int64_t>(rows[k]);
        prefetch_write(prefetch.row + i * prefetch.stride, prefetch.lines);
        __builtin_prefetch(only + i * only_stride, 1, 3);
      }
      return;
    }
    for (std::int64_t k = 0; k < count; ++k) prefetch(rows[k]);
  }
};
