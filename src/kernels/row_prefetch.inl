// Prefetches rows and slots before they are updated. Part of a level body: see for_each_level.inl.

/// Returns the number of rows between a row's prefetch and its update: 8 KiB of rows and slots, at
/// least 16 and at most 48 rows. bytes: of one row and its slots.
constexpr std::int64_t updated_rows_ahead(std::int64_t bytes) {
  const std::int64_t ahead = (8 << 10) / bytes;
  return ahead < 16 ? 16 : ahead > 48 ? 48 : ahead;
}

/// Fetches lines that will be written, far ahead of that or not.
template <int kLines = 0>
EMBERTABLE_INLINE void prefetch_update(const void* p, int lines, bool far) {
  if (far)
    prefetch_far<kLines>(p, lines);
  else
    prefetch_write<kLines>(p, lines);
}

/// Prefetches a row and its slots. Slots in the row's record come with it.
struct RowPrefetch {
  bool far;  ///< into the second-level cache
  const char* row;
  std::int64_t stride;  ///< bytes
  int lines;            ///< cache lines of the record
  int apart;            ///< slots outside of it
  const char* slot[kMaxSlots];
  std::int64_t slot_stride[kMaxSlots];  ///< bytes
  int slot_lines[kMaxSlots];

  RowPrefetch(const RowBlock& rows, bool to_level2)
      : far(to_level2),
        row(static_cast<const char*>(rows.memory())),
        stride(rows.stride * rows.element_bytes()),
        lines(0),
        apart(0) {
    std::int64_t record = rows.dim * rows.element_bytes();
    const std::int64_t full = rows.dim * 4;  // bytes of a slot with dim numbers
    for (int s = 0; s < rows.slots; ++s) {
      const auto offset =
          reinterpret_cast<std::intptr_t>(rows.slot[s]) - reinterpret_cast<std::intptr_t>(row);
      const std::int64_t step = rows.slot_stride[s] * 4;
      if (step == stride && offset >= 0 && offset + full <= stride) {
        if (offset + full > record) record = offset + full;
        continue;
      }
      slot[apart] = reinterpret_cast<const char*>(rows.slot[s]);
      slot_stride[apart] = step;
      const std::int64_t width = step < full ? step : full;
      slot_lines[apart++] = width == 4 ? 1 : lines_of(rows.slot[s], step, width);
    }
    lines = lines_of(row, stride, record);
  }

  /// Returns the size of one row and its slots in whole lines.
  std::int64_t bytes() const {
    std::int64_t all = lines;
    for (int s = 0; s < apart; ++s) all += slot_lines[s];
    return all * 64;
  }

  [[gnu::noinline]] void operator()(std::uint64_t r) const {
    const auto i = static_cast<std::int64_t>(r);
    prefetch_update(row + i * stride, lines, far);
    for (int s = 0; s < apart; ++s)
      prefetch_update(slot[s] + i * slot_stride[s], slot_lines[s], far);
  }
};

/// RowPrefetch for the usual rules, which keep one number per row as an array of its own, or
/// nothing. Small enough for registers. If kLines > 0, it is the number of lines of a record.
template <int kLines = 0>
struct PlainRowPrefetch {
  bool far;
  const char* row;
  std::int64_t stride;  ///< bytes
  const char* slot;
  std::int64_t slot_stride;
  int lines;

  static bool fits(const RowPrefetch& p) {
    return (kLines == 0 || p.lines == kLines) &&
           (p.apart == 0 || (p.apart == 1 && p.slot_lines[0] == 1));
  }

  explicit PlainRowPrefetch(const RowPrefetch& p)
      : far(p.far),
        row(p.row),
        stride(p.stride),
        slot(p.row),
        slot_stride(p.stride),
        lines(p.lines) {
    if (p.apart == 1) slot = p.slot[0], slot_stride = p.slot_stride[0];
  }

  std::int64_t bytes() const { return (lines + (slot == row ? 0 : 1)) * 64; }

  EMBERTABLE_INLINE void operator()(std::uint64_t r) const {
    const auto i = static_cast<std::int64_t>(r);
    prefetch_update<kLines>(row + i * stride, lines, far);
    prefetch_update<1>(slot + i * slot_stride, 1, far);
  }
};
