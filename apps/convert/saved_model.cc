#include "apps/convert/saved_model.h"

#include <fmt/format.h>

#include <cstring>
#include <utility>

#include "base/did_you_mean.h"
#include "checkpoint/id_maps.h"
#include "checkpoint/reader.h"
#include "embertable/checkpoint.h"
#include "embertable/errors.h"

namespace embertable::jobs {
const checkpoint::SavedTable& find_table(const checkpoint::Reader& reader,
                                         const std::string& name) {
  std::vector<std::string_view> names;
  for (const checkpoint::SavedTable& table : reader.manifest().tables) {
    if (table.name == name) return table;
    names.push_back(table.name);
  }
  throw KeyError(fmt::format("'{}' has no table '{}'{}", reader.directory().string(), name,
                             did_you_mean(name, names)));
}

namespace {

SavedTableShape parts_of(const checkpoint::Reader& reader, const checkpoint::SavedTable& table) {
  return {.table = table.name,
          .rows = table.vocabulary_size,
          .dim = table.dim,
          .directory = reader.directory()};
}

RowKeys keys_of(const checkpoint::Reader& reader, const std::string& table) {
  return {parts_of(reader, find_table(reader, table)), reader.caller_state(),
          checkpoint::read_id_maps(reader)};
}

}  // namespace

SavedTableRows::SavedTableRows(const std::filesystem::path& path, const std::string& table)
    : SavedTableRows(checkpoint::Reader(checkpoint::local_files(), path), table) {}

SavedTableRows::SavedTableRows(const checkpoint::Reader& reader, const std::string& table)
    : RowKeys(keys_of(reader, table)), name_(table) {
  const checkpoint::SavedTable& saved = find_table(reader, table);
  rows_ = saved.vocabulary_size;
  dim_ = saved.dim;
  values_.resize(rows_ * dim_);
  const CallerState caller = reader.caller_state();
  if (const DenseTensor* vectors = saved_vectors(parts_of(reader, saved), caller)) {
    std::memcpy(values_.data(), vectors->bytes.data(), vectors->bytes.size());
  } else {
    reader.variable(table).read(0, values_);
  }
}

void SavedTableRows::check_row(std::int64_t row) const {
  if (row < 0 || row >= rows_)
    throw IndexError(
        fmt::format("table '{}': a row must be from 0 to {}, got {}", name_, rows_ - 1, row));
}

}  // namespace embertable::jobs
