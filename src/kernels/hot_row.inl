/// Number of entries that are searched before what was found is added.
inline constexpr std::int64_t kSearched = 1024;
inline constexpr std::int64_t kHotGradientsAhead = 32;

/// Adds the gradients of a run to the sum, or starts it with the first of them.
struct AddRun {
  const GradientPiece& piece;
  const std::uint32_t* output;  ///< [count], within the piece
  const float* gain;            ///< parallel, or null
  std::int64_t count;
  bool starts;
  std::int64_t first_column;
  float* to;

  template <int V, bool kPart>
  EMBERTABLE_INLINE void run(std::int64_t column, int tail) const {
    const float* base = piece.base + first_column + column;
    F16 sum[V], term[V];
    std::int64_t k = 0;
    if (starts) {
      load_columns<V, kPart>(sum, base + output[0] * piece.stride, tail);
      if (gain != nullptr) multiply_columns(sum, gain[0]);
      k = 1;
    } else {
      load_columns<V, kPart>(sum, to + column, tail);
    }
    for (; k < count; ++k) {
      if (k + kHotGradientsAhead < count)
        prefetch_read<V>(base + output[k + kHotGradientsAhead] * piece.stride, V);
      load_columns<V, kPart>(term, base + output[k] * piece.stride, tail);
      if (gain != nullptr) multiply_columns(term, gain[k]);
      add_columns(sum, term);
    }
    store_columns<V, kPart>(to + column, sum, tail);
  }
};

template <class Index>
std::int64_t sum_hot_row(const HotRowSum<Index>& args) {
  std::uint32_t output[kSearched];
  float gain[kSearched];
  const EntryList<Index>& entries = args.entries;
  std::int64_t found = 0;
  for (std::int64_t i = 0; i < entries.count;) {
    const std::int64_t end = entries.count - i < kSearched ? entries.count : i + kSearched;
    std::int64_t n = 0;
    for (; i < end; ++i) {
      output[n] = static_cast<std::uint32_t>(entries.out_at(i) % kPieceRows);
      gain[n] = entries.gain != nullptr ? entries.gain[i] : 1.0f;
      n += entries.row_at(i) == args.row;
    }
    if (n == 0) continue;
    for_each_block(args.columns,
                   AddRun{args.piece, output, entries.gain != nullptr ? gain : nullptr, n,
                          found == 0, args.column, args.sum});
    found += n;
  }
  return found;
}

template <class Index>
std::int64_t leave_out(const LeaveOut<Index>& args) {
  const EntryList<Index>& entries = args.entries;
  const std::int32_t rows = args.rows;
  std::int64_t n = 0;
  for (std::int64_t i = 0; i < entries.count; ++i) {
    const Index row = entries.row_at(i);
    bool stays = true;
    for (std::int32_t h = 0; h < rows; ++h) stays &= row != args.left_out[h];
    args.row[n] = row;
    args.out[n] = entries.out_at(i);
    if (entries.gain != nullptr) args.gain[n] = entries.gain[i];
    n += stays;
  }
  return n;
}
