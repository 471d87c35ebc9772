#include <algorithm>

#include "bench/baseline.h"

namespace embertable::bench {
namespace {

constexpr Rates kRates = {.learning_rate = kLearningRate, .epsilon = kEpsilon};

/// The first entry at or behind a piece; samples rise within a bucket.
std::uint32_t piece_begin(const std::uint32_t* sample, std::uint32_t entries, std::int32_t piece) {
  const auto first_sample = static_cast<std::uint32_t>(piece) * kPieceSamples;
  return static_cast<std::uint32_t>(std::lower_bound(sample, sample + entries, first_sample) -
                                    sample);
}

}  // namespace

/// Adds a tiny table to the last item, if that is an open group with room, or else begins one.
void Baseline::add_to_tiny_group(std::uint32_t table, bool open) {
  const BaselinePlan& plan = plans_[table];
  if (open) {
    UpdateItem& group = updates_.back();
    std::size_t rows = tables_[table].num_rows;
    for (std::uint32_t t = group.table; t < table; ++t) rows += tables_[t].num_rows;
    if (group.bucket < kMostTinyTables && rows * dim_ * sizeof(float) <= kTinyGroupBytes) {
      group.bucket++;
      group.entries += plan.nnz;
      return;
    }
  }
  updates_.push_back({UpdateKind::kTinyTables, 0, table, 1, plan.nnz});
}

void Baseline::start_heavy(std::uint32_t table, std::uint32_t bucket, std::uint32_t entries) {
  HeavyBucket& heavy = heavy_[table];
  heavy.rows_of_piece.assign(pieces(), 0);
  heavy.pieces_left = pieces();
  const std::uint32_t cost = entries / static_cast<std::uint32_t>(pieces());
  for (std::int32_t piece = 0; piece < pieces(); ++piece) {
    updates_.push_back({UpdateKind::kPieceOfBucket, piece, table, bucket, cost});
  }
}

void Baseline::add_buckets(std::uint32_t table) {
  const BaselinePlan& plan = plans_[table];
  const std::uint32_t mean = plan.nnz / plan.buckets + 1;
  bool has_heavy = false;
  for (std::uint32_t b = 0; b < plan.buckets; ++b) {
    const std::uint32_t entries = plan.bucket_begin[b + 1] - plan.bucket_begin[b];
    if (entries == 0) continue;
    if (pieces() > 1 && entries > 4 * mean + 4096 && !has_heavy) {
      start_heavy(table, b, entries);
      has_heavy = true;
    } else {
      updates_.push_back({UpdateKind::kBucket, 0, table, b, entries});
    }
  }
}

void Baseline::list_updates() {
  updates_.clear();
  bool open = false;
  for (std::uint32_t t = 0; t < plans_.size(); ++t) {
    if (plans_[t].tiny && plans_[t].one_hot) {
      add_to_tiny_group(t, open);
      open = true;
    } else {
      add_buckets(t);
      open = false;
    }
  }
  std::sort(updates_.begin(), updates_.end(), [](const UpdateItem& a, const UpdateItem& b) {
    if (a.entries != b.entries) return a.entries > b.entries;
    if (a.table != b.table) return a.table < b.table;
    if (a.bucket != b.bucket) return a.bucket < b.bucket;
    return a.piece < b.piece;
  });
}

/// The rows and samples of a bucket's entries; a table with one bucket needs no entries of their
/// own.
void Baseline::read_entries(Grouping& grouping, const UpdateItem& item, const std::uint32_t** row,
                            const std::uint32_t** sample) const {
  const BaselinePlan& plan = plans_[item.table];
  const std::uint32_t begin = plan.bucket_begin[item.bucket];
  if (plan.buckets == 1) {
    *row = plan.row;
    *sample = plan.one_hot ? count_up_ : plan.sample;
    return;
  }
  kernels_.unpack(grouping, plan.entries + begin, plan.bucket_begin[item.bucket + 1] - begin);
  *row = grouping.entry_row;
  *sample = grouping.entry_sample;
}

void Baseline::update_bucket(Grouping& grouping, const UpdateItem& item, const float* gradients) {
  const std::uint32_t* row = nullptr;
  const std::uint32_t* sample = nullptr;
  read_entries(grouping, item, &row, &sample);
  kernels_.group(grouping, row, sample, item.entries, tables_[item.table]);
  plans_[item.table].unique_rows.fetch_add(grouping.singles + grouping.multiples,
                                           std::memory_order_relaxed);
  kernels_.update(grouping, tables_[item.table], gradients_of(item.table, gradients), pieces() > 1,
                  kRates);
}

/// Sums one piece of a heavy bucket. Who finishes last adds the pieces' sums, in order, and applies
/// the rule.
void Baseline::update_piece(Grouping& grouping, const UpdateItem& item, const float* gradients) {
  const BaselinePlan& plan = plans_[item.table];
  const std::uint32_t entries = plan.bucket_begin[item.bucket + 1] - plan.bucket_begin[item.bucket];
  const std::uint32_t* row = nullptr;
  const std::uint32_t* sample = nullptr;
  read_entries(grouping, item, &row, &sample);

  HeavyBucket& heavy = heavy_[item.table];
  const std::uint32_t begin = piece_begin(sample, entries, item.piece);
  const std::uint32_t end = piece_begin(sample, entries, item.piece + 1);
  kernels_.group(grouping, row + begin, sample + begin, end - begin, tables_[item.table]);
  heavy.rows_of_piece[item.piece] =
      kernels_.sum(grouping, gradients_of(item.table, gradients), heavy.row + begin,
                   heavy.sums.as<float>() + begin * dim_);
  if (heavy.pieces_left.fetch_sub(1, std::memory_order_acq_rel) != 1) return;

  std::uint32_t sums = 0;
  std::vector<std::uint32_t> begins;
  for (std::int32_t piece = 0; piece < pieces(); ++piece) {
    begins.push_back(piece_begin(sample, entries, piece));
  }
  for (std::size_t piece = 0; piece < begins.size(); ++piece) {
    for (std::uint32_t i = begins[piece]; i < begins[piece] + heavy.rows_of_piece[piece]; ++i) {
      grouping.entry_row[sums] = heavy.row[i];
      grouping.entry_sample[sums++] = i;
    }
  }
  kernels_.group(grouping, grouping.entry_row, grouping.entry_sample, sums, tables_[item.table]);
  kernels_.update(grouping, tables_[item.table], {heavy.sums.as<float>(), dim_}, false, kRates);
}

void Baseline::update_tiny(Grouping& grouping, const UpdateItem& item, const float* gradients) {
  TinyItem tiny{};
  tiny.tables = &tables_[item.table];
  tiny.count = static_cast<int>(item.bucket);
  for (int t = 0; t < tiny.count; ++t) {
    tiny.row[t] = plans_[item.table + static_cast<std::uint32_t>(t)].row;
  }
  tiny.samples = samples_;
  tiny.gradients = gradients_of(item.table, gradients);
  kernels_.update_tiny(grouping, tiny, kRates);
}

void Baseline::backward(const float* gradients) {
  std::atomic<std::size_t> next{0};
  team_.run([&](int worker) {
    Grouping& grouping = groupings_[worker];
    for (std::size_t k = 0; (k = next.fetch_add(1)) < updates_.size();) {
      const UpdateItem& item = updates_[k];
      switch (item.kind) {
        case UpdateKind::kBucket:
          update_bucket(grouping, item, gradients);
          break;
        case UpdateKind::kPieceOfBucket:
          update_piece(grouping, item, gradients);
          break;
        case UpdateKind::kTinyTables:
          update_tiny(grouping, item, gradients);
          break;
      }
    }
  });
}

}  // namespace embertable::bench
