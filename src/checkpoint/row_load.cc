#include "checkpoint/row_load.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <exception>
#include <set>
#include <utility>

#include "base/bfloat16.h"
#include "base/interruption.h"
#include "base/rows.h"

namespace embertable::checkpoint {
namespace {

/// Bytes of all variables together that are read at once: few enough to be still in the
/// second-level cache when they are summed and copied.
constexpr std::int64_t kReadBytes = 128 << 10;

/// Bytes of all variables that are copied at once when they share their rows' records, so that a
/// record is written as a whole, or nearly.
constexpr std::int64_t kCopyBytes = 16 << 10;

/// Blocks of each variable that one worker takes at once. Workers that fill one huge page side by
/// side may both wait for the kernel to clear it.
constexpr std::int64_t kMostBlocksAtOnce = 4;
constexpr std::int64_t kLeastTasksPerLane = 8;

/// Read-ahead: blocks requested ahead of the one being consumed.
constexpr std::int64_t kReadAhead = 8;

/// Copies `bytes` bytes of elements, and converts them between float32 and bfloat16.
void copy_elements(const std::byte* from, std::int64_t bytes, RowType type, std::byte* to,
                   RowType to_type) noexcept {
  if (type == to_type) {
    std::memcpy(to, from, bytes);
    return;
  }
  for (std::int64_t at = 0; at < bytes;
       at += bytes_per_element(type), to += bytes_per_element(to_type)) {
    if (type == RowType::kBfloat16) {
      std::uint16_t half = 0;
      std::memcpy(&half, from + at, sizeof(half));
      const float x = widened(half);
      std::memcpy(to, &x, sizeof(x));
    } else {
      float x = 0;
      std::memcpy(&x, from + at, sizeof(x));
      const std::uint16_t half = rounded_to_nearest(x);
      std::memcpy(to, &half, sizeof(half));
    }
  }
}

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
  std::int64_t offset;  ///< position of the variable's first byte in the file
  std::int64_t bytes;   ///< size of the variable
  std::int64_t row_bytes;
  Progression in_file;
  Progression in_target;
  std::byte* data;
  std::int64_t stride_bytes;
  RowType type;         ///< type in the file
  RowType target_type;  ///< type in the target

  /// True if file and target hold the bytes in the same way.
  bool adjoining() const noexcept {
    return in_file.step == 1 && in_target.step == 1 && stride_bytes == row_bytes &&
           type == target_type;
  }

  std::int64_t begin() const noexcept { return offset + in_file.first * row_bytes; }
  std::int64_t end() const noexcept {
    return offset + in_file[in_file.count - 1] * row_bytes + row_bytes;
  }

  /// Returns the places of the rows that have bytes in [first, last) of the file.
  Places rows_in(std::int64_t first, std::int64_t last) const noexcept {
    if (last <= begin() || first >= end()) return {};
    const std::int64_t low = first <= offset ? 0 : (first - offset) / row_bytes;
    return places_within(in_file, low, (last - 1 - offset) / row_bytes);
  }

  /// Where byte `at` of the file goes, the first of an element of the row of place `place`.
  std::byte* target_of(std::int64_t place, std::int64_t at) const noexcept {
    const std::int64_t row = offset + in_file[place] * row_bytes;
    const std::int64_t before = at - row;
    return data + in_target[place] * stride_bytes +
           (type == target_type
                ? before
                : before / bytes_per_element(type) * bytes_per_element(target_type));
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
      copy_elements(block.data() + (from - first), to - from, type, target_of(place, from),
                    target_type);
    }
  }

 private:
  void copy(std::int64_t from, std::int64_t to, std::int64_t first,
            std::span<const std::byte> block) const noexcept {
    if (from < to) std::memcpy(target_of(0, from), block.data() + (from - first), to - from);
  }
};

/// A file, open while blocks of it are to be read.
struct RowLoad::Part {
  const FileRecord* record;
  std::vector<Piece> pieces;
  /// Size of a row in all variables that are not copied as they are.
  std::int64_t record_bytes = 0;
  std::int64_t variables = 0;  ///< number of those variables
  std::int64_t blocks = 0;     ///< number of blocks that are read
  std::int64_t first_block = 0, last_block = 0;

  std::mutex opening;
  std::shared_ptr<const BlockFile> file;
  std::int64_t left = 0;    ///< blocks of this run
  bool stays_open = false;  ///< after this run

  /// The piece that wants all of these bytes as they are, if there is one.
  const Piece* whole(std::int64_t first, std::int64_t last) const noexcept {
    for (const Piece& piece : pieces)
      if (piece.adjoining() && piece.begin() <= first && last <= piece.end()) return &piece;
    return nullptr;
  }

  /// A piece of the one variable that these bytes are of, if its rows go to records.
  const Piece* strided(std::int64_t first, std::int64_t last) const noexcept {
    for (const Piece& piece : pieces)
      if (!piece.adjoining() && piece.offset <= first && last <= piece.offset + piece.bytes)
        return &piece;
    return nullptr;
  }

  void deliver(std::int64_t at, std::span<const std::byte> bytes) const noexcept {
    for (const Piece& piece : pieces) piece.deliver(at, bytes);
  }

  std::shared_ptr<const BlockFile> open(const Reader& reader) {
    const std::lock_guard lock(opening);
    if (!file) file = std::make_shared<const BlockFile>(reader.blocks_of(*record));
    return file;
  }
  void done() {
    const std::lock_guard lock(opening);
    if (--left == 0 && !stays_open) file.reset();
  }
};

/// A block of one variable that is read by rows, and its bytes on their way to the records.
struct RowLoad::Stream {
  BlockRead block;
  std::int64_t offset;  ///< position of the variable's first byte in the file
  std::int64_t row_bytes;
  std::int64_t held_at = 0;  ///< where `held` stands in the file
  std::span<std::byte> held = {};

  bool done() const noexcept { return block.at() == block.end(); }
  std::int64_t next_row() const noexcept { return (block.at() - offset) / row_bytes; }

  /// Reads up to a row to the front of `buffer`; gives what is left of it.
  std::span<std::byte> read_to(std::int64_t row, std::span<std::byte> buffer) {
    held_at = block.at();
    const std::int64_t end = std::clamp(offset + row * row_bytes, held_at, block.end());
    held = buffer.first(end - held_at);
    if (!held.empty()) block.read(held);
    return buffer.subspan(held.size());
  }

  /// Copies what is held of rows [first, last).
  void deliver(const Part& part, std::int64_t first, std::int64_t last) const noexcept {
    const std::int64_t held_end = held_at + std::ssize(held);
    const std::int64_t from = std::clamp(offset + first * row_bytes, held_at, held_end);
    const std::int64_t to = std::clamp(offset + last * row_bytes, held_at, held_end);
    if (from < to) part.deliver(from, held.subspan(from - held_at, to - from));
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
    list_blocks(*part);
    parts_.push_back(std::move(part));
  }
}

RowLoad::~RowLoad() = default;

RowType RowLoad::saved_type(const RowTarget& target) const {
  return reader_.manifest().tables[target.table].row_type;
}

void RowLoad::add(Part& part, const RowTarget& target) {
  const Overlap both = overlap(part.record->rows, target.rows);
  if (both.a_index.count == 0) return;
  const StoredTensor& tensor = part.record->tensors[target.slot + 1];
  part.pieces.push_back({.offset = tensor.offset,
                         .bytes = tensor.bytes,
                         .row_bytes = tensor.bytes / part.record->rows.count,
                         .in_file = both.a_index,
                         .in_target = both.b_index,
                         .data = static_cast<std::byte*>(target.data),
                         .stride_bytes = target.stride * bytes_per_element(target.type),
                         .type = target.slot < 0 ? saved_type(target) : RowType::kFloat32,
                         .target_type = target.type});
}

/// Lists blocks in the order of the rows, because the parts of one record are far apart in the
/// file.
void RowLoad::list_blocks(Part& part) {
  const std::int64_t size = part.record->block_bytes;
  std::vector<std::int64_t> wanted(part.record->num_blocks(), -1);
  for (const Piece& piece : part.pieces) {
    for (std::int64_t block = piece.begin() / size; block * size < piece.end(); ++block) {
      const Places rows = piece.rows_in(block * size, (block + 1) * size);
      if (rows.first > rows.last) continue;
      std::int64_t& row = wanted[block];
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
  std::set<std::int64_t> strided;
  for (const Piece& piece : part.pieces)
    if (!piece.adjoining() && strided.insert(piece.offset).second)
      part.record_bytes += piece.row_bytes;
  part.variables = std::ssize(strided);
  for (const auto& [row, block] : order) blocks_.push_back({&part, block});
}

/// Neighbours in the order of the rows, the blocks of each variable that a record is of.
std::vector<RowLoad::Task> RowLoad::tasks_for(std::int64_t lanes) const {
  const std::int64_t fair = std::ssize(blocks_) / (lanes * kLeastTasksPerLane);
  std::vector<Task> tasks;
  for (std::int64_t first = 0, last = 0; first < std::ssize(blocks_); first = last) {
    const Part* part = blocks_[first].part;
    const std::int64_t variables = std::max<std::int64_t>(1, part->variables);
    const std::int64_t most =
        variables * std::clamp<std::int64_t>(fair / variables, 1, kMostBlocksAtOnce);
    while (last < std::ssize(blocks_) && last - first < most && blocks_[last].part == part) ++last;
    tasks.push_back({first, last});
  }
  return tasks;
}

void RowLoad::run(Executor& executor, bool deliver) {
  if (blocks_.empty()) return;
  std::int64_t buffer_bytes = kReadBytes;
  const std::size_t kept_open = most_open_files();  // between `check` and `load`
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    parts_[i]->left = parts_[i]->blocks;
    parts_[i]->stays_open = !deliver && i < kept_open;
    buffer_bytes = std::max(buffer_bytes, parts_[i]->record_bytes);
  }
  const std::int64_t lanes = std::min<std::int64_t>(kMostLanes, executor.workers());
  const std::vector<Task> tasks = tasks_for(lanes);
  Run run(std::ssize(tasks));
  executor.run(std::min(lanes, std::ssize(tasks)), [&](const WorkItem&) {
    std::int64_t next = 0;
    try {
      const auto size = static_cast<std::size_t>(buffer_bytes);
      const auto buffer = std::make_unique_for_overwrite<std::byte[]>(size);
      while ((next = run.next()) >= 0) {
        Interruption::ask();
        const auto [first, last] = tasks[next];
        take(std::span(blocks_).subspan(first, last - first), {buffer.get(), size}, deliver);
      }
    } catch (...) {
      run.fail(next);
    }
  });
  for (const auto& part : parts_)
    if (!part->stays_open) part->file.reset();
  run.rethrow();
}

void RowLoad::take(std::span<const Block> blocks, std::span<std::byte> buffer, bool deliver) {
  const auto shares_records = [](const Block& block) {
    const std::int64_t size = block.part->record->block_bytes;
    const std::int64_t first = block.index * size;
    const std::int64_t last = std::min(first + size, block.part->record->bytes);
    return block.part->strided(first, last) != nullptr;
  };
  if (deliver && blocks.size() > 1 && std::all_of(blocks.begin(), blocks.end(), shares_records))
    return take_side_by_side(blocks, buffer);
  for (const Block& block : blocks) take_alone(block, buffer, deliver);
}

BlockRead RowLoad::begin(const Block& block) {
  Part& part = *block.part;
  auto file = part.open(reader_);
  if ((block.index - part.first_block) % kReadAhead == 0)
    file->will_read(block.index, std::min(2 * kReadAhead, part.last_block + 1 - block.index));
  return {std::move(file), block.index};
}

void RowLoad::take_alone(const Block& block, std::span<std::byte> buffer, bool deliver) {
  Part& part = *block.part;
  BlockRead read = begin(block);
  const Piece* whole = deliver ? part.whole(read.at(), read.end()) : nullptr;
  while (read.at() < read.end()) {
    const std::int64_t at = read.at();
    const auto bytes = static_cast<std::size_t>(std::min(kReadBytes, read.end() - at));
    const std::span<std::byte> out(whole ? whole->target_of(0, at) : buffer.data(), bytes);
    read.read(out);
    if (!deliver) continue;
    for (const Piece& piece : part.pieces)
      if (&piece != whole) piece.deliver(at, out);
  }
  part.done();
}

/// Copies by rows, so that all variables of a record are written while it is in cache.
void RowLoad::take_side_by_side(std::span<const Block> blocks, std::span<std::byte> buffer) {
  Part& part = *blocks.front().part;
  std::vector<Stream> streams;
  for (const Block& block : blocks) {
    BlockRead read = begin(block);
    const Piece* piece = part.strided(read.at(), read.end());
    streams.push_back({std::move(read), piece->offset, piece->row_bytes});
  }
  const std::int64_t rows_read = std::max<std::int64_t>(1, kReadBytes / part.record_bytes);
  const std::int64_t rows_copied = std::max<std::int64_t>(1, kCopyBytes / part.record_bytes);
  for (;;) {
    const auto next =
        std::min_element(streams.begin(), streams.end(), [](const Stream& a, const Stream& b) {
          return std::pair(a.done(), a.next_row()) < std::pair(b.done(), b.next_row());
        });
    if (next->done()) break;
    const std::int64_t first = next->next_row(), last = first + rows_read;
    std::span<std::byte> free = buffer;
    for (Stream& stream : streams) free = stream.read_to(last, free);
    for (std::int64_t row = first; row < last; row += rows_copied)
      for (const Stream& stream : streams)
        stream.deliver(part, row, std::min(last, row + rows_copied));
  }
  for (std::size_t i = 0; i < blocks.size(); ++i) part.done();
}

}  // namespace embertable::checkpoint
