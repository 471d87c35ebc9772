#include "apps/jobs/spec/saved_parts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "apps/jobs/spec/job.h"
#include "apps/jobs/spec/state_tensors.h"
#include "checkpoint/json_text.h"
#include "checkpoint/reader.h"
#include "checkpoint/use_opened.h"
#include "embertable/errors.h"

namespace embertable::jobs {
namespace {

const char* name_of(KeyKind kind) { return kind == KeyKind::kInteger ? "integer" : "string"; }

std::int64_t rows_of(const SavedParts& saved, const std::string& ids) {
  return saved_id_map(saved.ids, ids, "the job", saved.directory()).num_rows();
}

void check_keys(const SavedParts& saved, const PartsById::Keys& wanted) {
  const IdMap& map = saved_id_map(saved.ids, wanted.ids, "the job", saved.directory());
  if (map.kind() == wanted.kind && map.out_of_vocabulary_rows() == wanted.shared_rows) return;
  throw misfit(saved.directory(),
               fmt::format("id map '{}' must have {} keys and {} shared rows as the job says, got "
                           "{} keys and {} shared rows",
                           wanted.ids, name_of(wanted.kind), wanted.shared_rows,
                           name_of(map.kind()), map.out_of_vocabulary_rows()));
}

void check_table(const SavedParts& saved, const TableSpec& wanted) {
  const std::vector<checkpoint::SavedTable>& tables = saved.reader.manifest().tables;
  const auto table = std::find_if(tables.begin(), tables.end(),
                                  [&](const auto& one) { return one.name == wanted.name; });
  if (table == tables.end())
    throw misfit(saved.directory(),
                 fmt::format("the job must have the table '{}', got none", wanted.name));
  if (table->dim != wanted.dim)
    throw misfit(saved.directory(),
                 fmt::format("table '{}' must have dim {} as the job says, got {}", wanted.name,
                             wanted.dim, table->dim));
  const SavedTableShape parts{wanted.name, table->vocabulary_size, table->dim, saved.directory()};
  saved_keys(parts, wanted.ids, saved.ids);
  saved_vectors(parts, saved.state);
}

/// Checks the ids of tables in the caller's JSON, which readers without knowledge of jobs use.
void check_named_ids(const SavedParts& saved) {
  const checkpoint::Json json = checkpoint::parse_json(saved.state.json, saved.directory());
  const checkpoint::JsonField root(json, saved.directory(), "user");
  for (const TableSpec& table : saved.job.tables) {
    const checkpoint::JsonField ids = root["ids"][table.name.c_str()];
    if (ids.text() != table.ids)
      ids.refuse(fmt::format("must be '{}' as the job says, got '{}'", table.ids, ids.text()));
  }
}

void check_names(const SavedParts& saved, const std::string& ids) {
  const IdMap& keys = saved_id_map(saved.ids, ids, "the job", saved.directory());
  saved_names(ids, keys, saved.state, saved.directory());
}

/// Returns the values of a tensor of one axis.
template <class T>
std::vector<T> saved_values(const SavedParts& saved, const std::string& name) {
  const auto found = saved.state.tensors.find(name);
  if (found == saved.state.tensors.end())
    throw misfit(saved.directory(),
                 fmt::format("the job must have the tensor '{}', got none", name));
  const DenseTensor& tensor = found->second;
  if (tensor.dtype != dtype_of<T>() || tensor.shape.size() != 1) {
    throw misfit(saved.directory(),
                 fmt::format("tensor '{}' must be {} of one axis, got {} of {}", name,
                             dtype_of<T>(), tensor.dtype, tensor.shape.size()));
  }
  std::vector<T> values(tensor.bytes.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), tensor.bytes.data(), values.size() * sizeof(T));
  return values;
}

}  // namespace

const std::filesystem::path& SavedParts::directory() const { return reader.directory(); }

ServingEmbedding SavedParts::serve(std::optional<Nested<FeatureConfig>> features) const {
  return checkpoint::serve_opened(reader, std::move(features));
}

void check_saved_parts(const SavedParts& saved) {
  const PartsById parts = saved.job.model->parts_by_id();
  for (const PartsById::Keys& keys : parts.keys) check_keys(saved, keys);
  check_named_ids(saved);
  for (const TableSpec& table : saved.job.tables) check_table(saved, table);
  for (const PartsById::Keys& keys : parts.keys) check_names(saved, keys.ids);
  for (const PartsById::Lists& lists : parts.lists)
    if (!lists.optional || is_saved(saved, lists)) saved_lists(saved, lists);
  for (const PartsById::Numbers& numbers : parts.numbers) saved_numbers(saved, numbers);
}

const DenseTensor& saved_parameter(const CallerState& state, const std::string& name,
                                   std::string_view dtype, const std::vector<std::int64_t>& shape,
                                   const std::filesystem::path& directory) {
  const auto found = state.tensors.find(name);
  if (found == state.tensors.end())
    throw misfit(directory, fmt::format("the job must have the tensor '{}', got none", name));
  const DenseTensor& tensor = found->second;
  if (tensor.dtype != dtype || tensor.shape != shape) {
    throw misfit(directory, fmt::format("tensor '{}' must be {} [{}] as the job says, got {} [{}]",
                                        name, dtype, fmt::join(shape, ", "), tensor.dtype,
                                        fmt::join(tensor.shape, ", ")));
  }
  return tensor;
}

bool is_saved(const SavedParts& saved, const PartsById::Lists& what) {
  return saved.state.tensors.contains(what.name + ".splits");
}

SavedLists saved_lists(const SavedParts& saved, const PartsById::Lists& what) {
  const std::int64_t lists = rows_of(saved, what.of), rows = rows_of(saved, what.ids);
  SavedLists found{saved_values<std::int64_t>(saved, what.name + ".splits"),
                   saved_values<std::int32_t>(saved, what.name + ".ids")};
  const auto& [splits, ids] = found;
  if (std::ssize(splits) != lists + 1 || splits.front() != 0 || splits.back() != std::ssize(ids) ||
      !std::is_sorted(splits.begin(), splits.end())) {
    throw misfit(
        saved.directory(),
        fmt::format(
            "tensor '{0}.splits' must be {1} numbers that rise from 0 to {2}, for the "
            "rows of id map '{3}' and the values of tensor '{0}.ids', got {4} numbers{5}",
            what.name, lists + 1, ids.size(), what.of, splits.size(),
            splits.empty() ? "" : fmt::format(" from {} to {}", splits.front(), splits.back())));
  }
  const auto bad =
      std::find_if(ids.begin(), ids.end(), [&](std::int32_t id) { return id < 0 || id >= rows; });
  if (bad != ids.end()) {
    throw misfit(saved.directory(),
                 fmt::format("tensor '{}.ids' must be rows 0 <= row < {} of id map '{}', got {} at "
                             "position {}",
                             what.name, rows, what.ids, *bad, bad - ids.begin()));
  }
  return found;
}

std::vector<float> saved_numbers(const SavedParts& saved, const PartsById::Numbers& what) {
  std::vector<float> numbers = saved_values<float>(saved, what.name);
  if (const std::int64_t rows = rows_of(saved, what.of); std::ssize(numbers) != rows) {
    throw misfit(saved.directory(),
                 fmt::format("tensor '{}' must have {} numbers, one for each row of id map '{}', "
                             "got {}",
                             what.name, rows, what.of, numbers.size()));
  }
  return numbers;
}

}  // namespace embertable::jobs
