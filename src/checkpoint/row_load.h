#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "checkpoint/block_file.h"
#include "checkpoint/progression.h"
#include "checkpoint/reader.h"
#include "embertable/executor.h"

namespace embertable::checkpoint {

/// Destination of rows of a saved variable: row rows[i] of the table goes to data + i * stride.
struct RowTarget {
  std::int64_t table = 0;  ///< index into Manifest::tables
  std::int32_t slot = -1;  ///< slot of that table, -1: the parameters
  Progression rows;        ///< within the table
  void* data = nullptr;
  std::int64_t stride = 0;           ///< elements, at least the width of a row
  RowType type = RowType::kFloat32;  ///< saved elements of another type are converted
};

/// Copies saved rows to memory on many threads: bfloat16 is widened, float32 rounded to nearest
/// even, where the target has the other type. Requires: no target is of int8 rows. Reads and checks
/// each block that holds wanted rows, and no other bytes. Borrows reader and memory.
class RowLoad {
 public:
  /// Maximum number of workers: each holds a block while it opens a file.
  static constexpr std::int64_t kMostLanes = 32;

  RowLoad(const Reader& reader, const std::vector<RowTarget>& targets);
  ~RowLoad();
  RowLoad(const RowLoad&) = delete;
  RowLoad& operator=(const RowLoad&) = delete;

  /// Reads and checks every block that `load` reads, and keeps the first files open for it: they
  /// may be removed meanwhile. Throws IoError; DataLoss naming file and block, the first of several
  /// by file and row.
  void check(Executor& executor) { run(executor, false); }

  /// Fills the targets. Throws as `check`, and what an Interruption throws; the targets are then
  /// partly filled.
  void load(Executor& executor) { run(executor, true); }

 private:
  struct Piece;
  struct Part;
  struct Block {
    Part* part;
    std::int64_t index;
  };
  struct Stream;
  struct Task {
    std::int64_t first, last;  ///< range of blocks_, all in one part
  };
  class Run;

  RowType saved_type(const RowTarget& target) const;
  void add(Part& part, const RowTarget& target);
  void list_blocks(Part& part);
  std::vector<Task> tasks_for(std::int64_t lanes) const;
  void run(Executor& executor, bool deliver);
  void take(std::span<const Block> blocks, std::span<std::byte> buffer, bool deliver);
  void take_alone(const Block& block, std::span<std::byte> buffer, bool deliver);
  void take_side_by_side(std::span<const Block> blocks, std::span<std::byte> buffer);
  BlockRead begin(const Block& block);

  const Reader& reader_;
  std::vector<std::unique_ptr<Part>> parts_;  ///< by file, those that hold wanted rows
  std::vector<Block> blocks_;                 ///< by file and row
};

}  // namespace embertable::checkpoint
