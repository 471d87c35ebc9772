#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "checkpoint/mapped_file.h"
#include "checkpoint/progression.h"
#include "embertable/embedding.h"
#include "embertable/executor.h"
#include "rows/shard.h"

namespace embertable::serving {

class ServedTable;

/// Rows as a lookup reads them. Borrowed.
struct Rows {
  const float* base = nullptr;  ///< row number n starts at base + n * stride
  std::int64_t stride = 0;      ///< floats
  std::int64_t rows = 0;        ///< 0 <= id < rows
  std::int32_t dim = 0;
  const ServedTable* table = nullptr;  ///< numbers the rows of ids; null: ids are row numbers
  bool renumbered = false;             ///< row numbers are not the ids
};

/// The rows of one table at rest: in memory, or in mapped files. Any number of threads may read.
class ServedTable {
 public:
  /// Rows of one file.
  struct Part {
    std::shared_ptr<const checkpoint::MappedFile> file;
    std::int64_t offset = 0;  ///< position of the first row in the file
    checkpoint::Progression rows;
  };

  /// Makes a table in memory.
  explicit ServedTable(Shard shard);

  /// Makes a table of at least one file, whose rows make up the table: adjoining blocks, or one
  /// residue class each. `check`: blocks are checked when they are first read.
  ServedTable(std::int64_t rows, std::int32_t dim, std::vector<Part> parts, bool check);

  ServedTable(const ServedTable&) = delete;
  ServedTable& operator=(const ServedTable&) = delete;

  std::int64_t num_rows() const noexcept { return rows_; }
  std::int32_t dim() const noexcept { return dim_; }
  Rows rows() const noexcept;

  /// Sets number[i] to the row number of id[i], which is within the table, and checks its blocks.
  /// The two may be one array; without renumbering `number` is not written. Throws DataLoss.
  void place(const std::uint64_t* id, std::int64_t count, std::uint64_t* number) const;

  /// Copies rows to out, `stride` floats apart; ids are within the table. Throws DataLoss.
  void copy(std::span<const std::uint64_t> ids, float* out, std::int64_t stride) const;

  /// Returns a copy of the whole table in memory. Throws DataLoss, IoError.
  std::shared_ptr<const ServedTable> copied(Executor& executor) const;

  /// Checks all blocks that have not been checked, even if blocks are not checked when read. Throws
  /// DataLoss naming the first damaged block.
  void check_all(Executor& executor) const;

  bool in_memory() const noexcept { return shard_ != nullptr; }

  /// Whether one block of memory has all rows in their order.
  bool is_one_block() const noexcept { return in_memory() || parts_.size() == 1; }

  /// Requires: is_one_block().
  TableView view() const noexcept;

 private:
  /// Position of a row: row `local` of parts_[part].
  struct Place {
    std::size_t part;
    std::int64_t local;
  };
  Place place_of(std::int64_t id) const noexcept;
  const float* first_row(const Part& part) const noexcept;
  void check(const Part& part, std::int64_t local, std::int64_t rows) const {
    part.file->check(part.offset + local * row_bytes_, rows * row_bytes_);
  }

  std::int64_t rows_;
  std::int32_t dim_;
  std::int64_t row_bytes_;
  std::unique_ptr<const Shard> shard_;
  std::vector<Part> parts_;          ///< by first row
  std::vector<std::int64_t> first_;  ///< row of each part
  std::int64_t step_ = 1;            ///< step between the rows of a part
  bool check_ = false;
  const float* base_ = nullptr;
  std::int64_t stride_ = 0;
};

/// Calls body(item) for all 0 <= item < items, and throws what the lowest item threw.
void run_all(Executor& executor, std::int64_t items, FunctionRef<void(std::int64_t)> body);

}  // namespace embertable::serving
