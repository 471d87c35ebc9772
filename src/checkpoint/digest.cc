#include "checkpoint/digest.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "base/hash.h"
#include "base/interruption.h"

namespace embertable::checkpoint {
namespace {

/// Bytes of rows that are asked for at once, unless one row has more.
constexpr std::int64_t kFillBytes = 4 << 20;

class Digest {
 public:
  void integer(std::int64_t value) { sum_.update(std::as_bytes(std::span(&value, 1))); }

  void text(const std::string& value) {
    integer(static_cast<std::int64_t>(value.size()));
    sum_.update(bytes_of(value));
  }

  void rows(const FillRows& fill, std::int64_t rows, std::int64_t width) {
    integer(width);
    const std::int64_t row_bytes = width * static_cast<std::int64_t>(sizeof(float));
    const std::int64_t at_once = std::max<std::int64_t>(1, kFillBytes / row_bytes);
    for (std::int64_t first = 0; first < rows; first += at_once) {
      Interruption::ask();
      buffer_.resize(std::min(at_once, rows - first) * width);
      fill(first, buffer_);
      sum_.update_numbers(buffer_);
    }
  }

  std::string hex() const { return sum_.hex(); }

 private:
  Hasher sum_;
  std::vector<float> buffer_;
};

void add(Digest& digest, const DigestTable& table) {
  digest.text(table.name);
  digest.integer(table.source.rows);
  digest.rows(table.source.fill[0], table.source.rows, table.dim);
  digest.integer(static_cast<std::int64_t>(table.slots.size()));
  std::vector<std::size_t> order(table.slots.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return table.slots[a].name < table.slots[b].name;
  });
  for (const std::size_t slot : order) {
    digest.text(table.slots[slot].name);
    digest.rows(table.source.fill[1 + slot], table.source.rows,
                table.slots[slot].row_wise ? 1 : table.dim);
  }
}

}  // namespace

std::string digest(std::vector<DigestTable> tables) {
  std::sort(tables.begin(), tables.end(),
            [](const DigestTable& a, const DigestTable& b) { return a.name < b.name; });
  Digest digest;
  digest.integer(static_cast<std::int64_t>(tables.size()));
  for (const DigestTable& table : tables) add(digest, table);
  return digest.hex();
}

std::string digest(const Reader& reader) {
  std::optional<VariableReader> open;  // one variable at a time, each from its first row on
  std::vector<DigestTable> tables;
  for (const SavedTable& saved : reader.manifest().tables) {
    const auto index = static_cast<std::int64_t>(tables.size());
    DigestTable table{.name = saved.name, .dim = saved.dim, .slots = saved.slots};
    table.source.rows = saved.vocabulary_size;
    for (std::int32_t slot = -1; slot < static_cast<std::int32_t>(saved.slots.size()); ++slot) {
      table.source.fill.push_back([&, index, slot](std::int64_t first, std::span<float> out) {
        if (first == 0) open = reader.variable(index, slot);
        open->read(first, out);
      });
    }
    tables.push_back(std::move(table));
  }
  return digest(std::move(tables));
}

}  // namespace embertable::checkpoint
