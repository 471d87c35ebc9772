#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/memory.h"
#include "checkpoint/mapped_file.h"
#include "checkpoint/progression.h"
#include "embertable/embedding.h"
#include "embertable/executor.h"
#include "rows/shard.h"

namespace embertable::serving {

class ServedTable;

/// Rows as a lookup reads them. Borrowed.
struct Rows {
  const void* base = nullptr;  ///< row number n starts n * stride elements behind
  std::int64_t stride = 0;     ///< elements: floats, halves or bytes
  std::int64_t rows = 0;       ///< 0 <= id < rows
  std::int32_t dim = 0;
  const ServedTable* table = nullptr;  ///< numbers the rows of ids; null: ids are row numbers
  bool renumbered = false;             ///< row numbers are not the ids
  RowType type = RowType::kFloat32;
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

  /// Makes a table in memory of rows as a file has them, one after the other.
  ServedTable(std::int64_t rows, std::int32_t dim, RowType type, Mapping memory);

  /// Makes a table of at least one file, whose rows make up the table: adjoining blocks, or one
  /// residue class each. `check`: blocks are checked when they are first read.
  ServedTable(std::int64_t rows, std::int32_t dim, RowType type, std::vector<Part> parts,
              bool check);

  ServedTable(const ServedTable&) = delete;
  ServedTable& operator=(const ServedTable&) = delete;

  std::int64_t num_rows() const noexcept { return rows_; }
  std::int32_t dim() const noexcept { return dim_; }
  RowType type() const noexcept { return type_; }
  Rows rows() const noexcept;

  /// Sets number[i] to the row number of id[i], which is within the table, and checks its blocks.
  /// The two may be one array; without renumbering `number` is not written. Throws DataLoss.
  void place(const std::uint64_t* id, std::int64_t count, std::uint64_t* number) const;

  /// Copies rows as floats to out, `stride` floats apart; ids are within the table. Throws
  /// DataLoss.
  void copy(std::span<const std::uint64_t> ids, float* out, std::int64_t stride) const;

  /// Returns a copy of the whole table in memory. Throws DataLoss, IoError.
  std::shared_ptr<const ServedTable> copied(Executor& executor) const;

  /// Returns a copy whose rows are float32. Throws DataLoss, IoError.
  std::shared_ptr<const ServedTable> widened(Executor& executor) const;

  /// Checks all blocks that have not been checked, even if blocks are not checked when read. Throws
  /// DataLoss naming the first damaged block.
  void check_all(Executor& executor) const;

  bool in_memory() const noexcept { return parts_.empty(); }

  /// Whether one block of memory has all rows in their order.
  bool is_one_block() const noexcept { return in_memory() || parts_.size() == 1; }

  /// Requires: is_one_block(), and rows are not int8.
  TableView view() const noexcept;

 private:
  /// Position of a row: row `local` of parts_[part].
  struct Place {
    std::size_t part;
    std::int64_t local;
  };
  Place place_of(std::int64_t id) const noexcept;
  const std::byte* first_row(const Part& part) const noexcept {
    return part.file->data() + part.offset;
  }
  const std::byte* row(std::uint64_t number) const noexcept;
  void copy_stored(std::span<const std::uint64_t> ids, std::byte* out, std::int64_t stride) const;
  template <class Take>
  void for_rows(std::span<const std::uint64_t> ids, Take take) const;
  template <class Copy>
  void copy_all(Executor& executor, Copy copy) const;
  void check(const Part& part, std::int64_t local, std::int64_t rows) const {
    part.file->check(part.offset + local * row_bytes_, rows * row_bytes_);
  }

  std::int64_t rows_;
  std::int32_t dim_;
  RowType type_;
  std::int64_t row_bytes_;
  std::unique_ptr<const Shard> shard_;
  Mapping memory_;
  std::vector<Part> parts_;          ///< by first row
  std::vector<std::int64_t> first_;  ///< row of each part
  std::int64_t step_ = 1;            ///< step between the rows of a part
  bool check_ = false;
  const std::byte* base_ = nullptr;
  std::int64_t stride_ = 0;  ///< elements
};

}  // namespace embertable::serving
