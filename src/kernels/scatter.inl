struct AddToRow {
  EMBERTABLE_INLINE F16 operator()(F16 x, F16 v) const { return x + v; }
};
struct SubFromRow {
  EMBERTABLE_INLINE F16 operator()(F16 x, F16 v) const { return x - v; }
};
struct MulRow {
  EMBERTABLE_INLINE F16 operator()(F16 x, F16 v) const { return x * v; }
};
struct DivRow {
  EMBERTABLE_INLINE F16 operator()(F16 x, F16 v) const { return x / v; }
};
struct MinOfRow {
  EMBERTABLE_INLINE F16 operator()(F16 x, F16 v) const {
    return select(equal(v, v), select(less(v, x), v, x), v);
  }
};
struct MaxOfRow {
  EMBERTABLE_INLINE F16 operator()(F16 x, F16 v) const {
    return select(equal(v, v), select(less(x, v), v, x), v);
  }
};
struct UpdateRow {
  EMBERTABLE_INLINE F16 operator()(F16, F16 v) const { return v; }
};

/// Combines columns of one row.
template <class Operation>
struct ScatterBlock {
  float* row;
  const float* value;

  template <int V, bool kPart>
  EMBERTABLE_INLINE void run(std::int64_t column, int tail) const {
    const Operation operation;
    F16 x[V], v[V];
    load_columns<V, kPart>(x, row + column, tail);
    load_columns<V, kPart>(v, value + column, tail);
    EMBERTABLE_UNROLL
    for (int i = 0; i < V; ++i) x[i] = operation(x[i], v[i]);
    store_columns<V, kPart>(row + column, x, tail);
  }
};

/// If V > 0, rows have 16 * V floats and start on cache lines.
template <int V, class Operation>
void scatter_as(const ScatterRows& args) {
  constexpr std::int64_t kAhead = 16;
  const std::int64_t dim = args.dim;
  const int lines = V > 0 ? V : lines_of(args.table, args.stride * 4, dim * 4);
  const int value_lines = lines_of(args.values, dim * 4, dim * 4);
  for (std::int64_t i = 0; i < args.count; ++i) {
    const std::int64_t next = i + kAhead;
    if (__builtin_expect(next < args.count + args.soon, 1)) {
      prefetch_write<V>(args.table + static_cast<std::int64_t>(args.row[next]) * args.stride,
                        lines);
      if (args.from != nullptr)
        prefetch_read(args.values + static_cast<std::int64_t>(args.from[next]) * dim, value_lines);
    }
    const std::int64_t value = args.from == nullptr ? i : static_cast<std::int64_t>(args.from[i]);
    const ScatterBlock<Operation> block = {
        args.table + static_cast<std::int64_t>(args.row[i]) * args.stride,
        args.values + value * dim};
    if constexpr (V > 0)
      block.template run<V, false>(0, 16);
    else
      for_each_block(dim, block);
  }
}

template <class Operation>
void scatter_by(const ScatterRows& args) {
  if (lines_of(args.table, args.stride * 4, args.dim * 4) * 16 == args.dim) {
    if (args.dim == 16) return scatter_as<1, Operation>(args);
    if (args.dim == 32) return scatter_as<2, Operation>(args);
    if (args.dim == 64) return scatter_as<4, Operation>(args);
  }
  scatter_as<0, Operation>(args);
}

inline void scatter_rows(RowOperation operation, const ScatterRows& args) {
  switch (operation) {
    case RowOperation::kAdd:
      return scatter_by<AddToRow>(args);
    case RowOperation::kSub:
      return scatter_by<SubFromRow>(args);
    case RowOperation::kMul:
      return scatter_by<MulRow>(args);
    case RowOperation::kDiv:
      return scatter_by<DivRow>(args);
    case RowOperation::kMin:
      return scatter_by<MinOfRow>(args);
    case RowOperation::kMax:
      return scatter_by<MaxOfRow>(args);
    case RowOperation::kUpdate:
      return scatter_by<UpdateRow>(args);
  }
}
