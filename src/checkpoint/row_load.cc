#include "checkpoint/row_load.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <exception>
#include <span>

namespace embertable::checkpoint {
namespace {

/// Read at once: small enough to be in the second-level cache still when it is summed and copied.
constexpr std::int64_t kReadBytes = 256 << 10;

/// Blocks that the disk is told of at once, this many ahead of those that are taken.
constexpr std::int64_t kReadAhead = 8;

constexpr auto kFloatBytes = static_cast<std::int64_t>(sizeof(float));

/// The places of a rising progression whose values lie in [low, high].
struct Places {
  std::int64_t first = 0;
  std::int64_t last = -1;
};
Places places_within(const Progression& values, std::int64_t low, std::int64_t high) {
  const auto below = [&](std::int64_t value) {  // places whose values are less
    return value <= values.first ? 0 : (value - values.first + values.step - 1) / values.step;
  };
  return {below(low), std::min(below(high + 1), values.count) - 1};
}

}  // namespace

/// Rows that a file holds and a target wants: row in_file[i] of the file's variable is row
/// in_target[i] of the target.
struct RowLoad::Piece {
  std::int64_t offset;  ///< of the variable's first byte in the file
  std::int64_t row_bytes;
  Progression in_file;
  Progression in_target;
  std::byte* data;
  std::int64_t stride_bytes;

  /// Whether file and target hold the bytes in the same way.
  bool adjoining() const noexcept {
    return in_file.step == 1 && in_target.step == 1 && stride_bytes == row_bytes;
  }

  std::int64_t begin() const noexcept { return offset + in_file.first * row_bytes; }
  std::int64_t end() const noexcept {
    return offset + in_file[in_file.count - 1] * row_bytes + row_bytes;
  }

  /// Places of the rows with bytes in [first, last) of the file.
  Places rows_in(std::int64_t first, std::int64_t last) const noexcept {
    if (last <= begin() || first >= end()) return {};
    const std::int64_t low = first <= offset ? 0 : (first - offset) / row_bytes;
    return places_within(in_file, low, (last - 1 - offset) / row_bytes);
  }

  /// Where byte `at` of the file goes, one of the row of place `place`.
  std::byte* target_of(std::int64_t place, std::int64_t at) const noexcept {
    const std::int64_t row = offset + in_file[place] * row_bytes;
    return data + in_target[place] * stride_bytes + (at - row);
  }

  /// Copies what bytes [first, first + block.size()) of the file hold of the rows.
  void deliver(std::int64_t first, std::span<const std::byte> block) const noexcept {
    const std::int64_t last = first + static_cast<std::int64_t>(block.size());
    if (adjoining()) return copy(std::max(first, begin()), std::min(last, end()), first, block);
    const Places places = rows_in(first, last);
    for (std::int64_t place = places.first; place <= places.last; ++place) {
      const std::int64_t row = offset + in_file[place] * row_bytes;
      const std::int64_t from = std::max(first, row);
      const std::int64_t to = std::min(last, row + row_bytes);
      std::memcpy(target_of(place, from), block.data() + (from - first),
                  static_cast<std::size_t>(to - from));
    }
  }

 private:
  void copy(std::int64_t from, std::int64_t to, std::int64_t first,
            std::span<const std::byte> block) const noexcept {
    if (from < to)
      std::memcpy(target_of(0, from), block.data() + (from - first),
                  static_cast<std::size_t>(to - from));
  }
};

/// A file, open while blocks of it are to be read.
struct RowLoad::Part {
  const FileRecord* record;
  std::vector<Piece> pieces;
  std::int64_t blocks = 0;  ///< that are read
  std::int64_t first_block = 0, last_block = 0;

  std::mutex opening;
  std::shared_ptr<const BlockFile> file;
  std::int64_t left = 0;    ///< blocks of this run
  bool stays_open = false;  ///< after this run

  std::shared_ptr<const BlockFile> open(const Reader& reader) {
    const std::lock_guard lock(opening);
    if (!file)
      file = std::make_shared<const BlockFile>(reader.files(), reader.directory(), *record);
    return file;
  }
  void done() {
    const std::lock_guard lock(opening);
    if (--left == 0 && !stays_open) file.reset();
  }
};

/// The tasks of one pass, handed out in order until one fails.
class RowLoad::Run {
 public:
  explicit Run(std::int64_t tasks) : tasks_(tasks) {}

  /// -1: there is none.
  std::int64_t next() noexcept {
    if (failed_.load(std::memory_order_relaxed)) return -1;
    const std::int64_t task = next_.fetch_add(1, std::memory_order_relaxed);
    return task < tasks_ ? task : -1;
  }

  void fail(std::int64_t task) noexcept {
    failed_ = true;
    const std::lock_guard lock(mutex_);
    if (error_ && failed_task_ < task) return;
    error_ = std::current_exception();
    failed_task_ = task;
  }

  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  const std::int64_t tasks_;
  std::atomic<std::int64_t> next_ = 0;
  std::atomic<bool> failed_ = false;
  std::mutex mutex_;
  std::exception_ptr error_;
  std::int64_t failed_task_ = 0;
};

RowLoad::RowLoad(const Reader& reader, const std::vector<RowTarget>& targets) : reader_(reader) {
  for (const FileRecord& record : reader.manifest().files) {
    if (record.kind != FileKind::kTable) continue;
    auto part = std::make_unique<Part>();
    part->record = &record;
    for (const RowTarget& target : targets)
      if (target.table == record.table) add(*part, target);
    if (part->pieces.empty()) continue;
    list_tasks(*part);
    parts_.push_back(std::move(part));
  }
}

RowLoad::~RowLoad() = default;

void RowLoad::add(Part& part, const RowTarget& target) {
  const Overlap both = overlap(part.record->rows, target.rows);
  if (both.a_index.count == 0) return;
  const StoredTensor& tensor = part.record->tensors[static_cast<std::size_t>(target.slot + 1)];
  part.pieces.push_back({.offset = tensor.offset,
                         .row_bytes = tensor.bytes / part.record->rows.count,
                         .in_file = both.a_index,
                         .in_target = both.b_index,
                         .data = reinterpret_cast<std::byte*>(target.data),
                         .stride_bytes = target.stride * kFloatBytes});
}

/// In the order of the rows: what belongs to one record stands far apart in the file, but is
/// written while the record is in cache.
void RowLoad::list_tasks(Part& part) {
  const std::int64_t size = part.record->block_bytes;
  std::vector<std::int64_t> wanted(static_cast<std::size_t>(part.record->num_blocks()), -1);
  for (const Piece& piece : part.pieces) {
    for (std::int64_t block = piece.begin() / size; block * size < piece.end(); ++block) {
      const Places rows = piece.rows_in(block * size, (block + 1) * size);
      if (rows.first > rows.last) continue;
      std::int64_t& row = wanted[static_cast<std::size_t>(block)];
      row = std::max(row, piece.in_file[rows.first]);
    }
  }
  std::vector<std::pair<std::int64_t, std::int64_t>> order;  // first row, block
  for (std::size_t block = 0; block < wanted.size(); ++block)
    if (wanted[block] >= 0) order.emplace_back(wanted[block], static_cast<std::int64_t>(block));
  part.blocks = static_cast<std::int64_t>(order.size());
  if (order.empty()) return;
  part.first_block = order.front().second;
  part.last_block = order.back().second;
  std::sort(order.begin(), order.end());
  for (const auto& [row, block] : order) tasks_.push_back({&part, block});
}

void RowLoad::run(Executor& executor, bool deliver) {
  if (tasks_.empty()) return;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    parts_[i]->left = parts_[i]->blocks;
    parts_[i]->stays_open = !deliver && i < kMostKeptOpen;
  }
  const auto num_tasks = static_cast<std::int64_t>(tasks_.size());
  const std::int64_t lanes = std::min<std::int64_t>(kMostLanes, executor.workers());
  Run run(num_tasks);
  executor.run(std::min(lanes, num_tasks), [&](const WorkItem&) {
    std::int64_t task = 0;
    try {
      const auto buffer =
          std::make_unique_for_overwrite<std::byte[]>(static_cast<std::size_t>(kReadBytes));
      while ((task = run.next()) >= 0)
        take(tasks_[static_cast<std::size_t>(task)], buffer.get(), deliver);
    } catch (...) {
      run.fail(task);
    }
  });
  for (const auto& part : parts_)
    if (!part->stays_open) part->file.reset();
  run.rethrow();
}

void RowLoad::take(const Task& task, std::byte* buffer, bool deliver) {
  Part& part = *task.part;
  const auto file = part.open(reader_);
  if ((task.block - part.first_block) % kReadAhead == 0)
    file->will_read(task.block, std::min(2 * kReadAhead, part.last_block + 1 - task.block));
  const std::int64_t first = task.block * part.record->block_bytes;
  const std::int64_t last = first + file->block_bytes(task.block);
  const Piece* whole = nullptr;  // its rows want all of the block as it is
  for (const Piece& piece : part.pieces)
    if (deliver && piece.adjoining() && piece.begin() <= first && last <= piece.end())
      whole = &piece;
  file->read_pieces(
      task.block, kReadBytes,
      [&](std::int64_t at) { return whole ? whole->target_of(0, at) : buffer; },
      [&](std::int64_t at, std::span<const std::byte> bytes) {
        for (const Piece& piece : part.pieces)
          if (deliver && &piece != whole) piece.deliver(at, bytes);
      });
  part.done();
}

}  // namespace embertable::checkpoint
