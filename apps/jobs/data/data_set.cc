#include "apps/jobs/data/data_set.h"

#include <span>

#include "base/hash.h"

namespace embertable::jobs {
namespace {

/// Hashes one cell of every sample, independently of which cell it is.
void hash_cell(const Samples& samples, std::int64_t cell, Hasher& hasher) {
  std::vector<std::int32_t> values;
  values.reserve(samples.size());
  for (std::int64_t s = 0; s < samples.size(); ++s) values.push_back(samples.row(s)[cell]);
  hasher.update(std::as_bytes(std::span(values)));
}

/// Hashes one number of every sample as earlier versions do, which read them as binary32.
void hash_number(const Samples& samples, std::int64_t cell, Hasher& hasher) {
  std::vector<float> values;
  values.reserve(samples.size());
  for (std::int64_t s = 0; s < samples.size(); ++s)
    values.push_back(static_cast<float>(samples.number(s, cell)));
  hasher.update(std::as_bytes(std::span(values)));
}

}  // namespace

Samples DataSet::select(const std::vector<Part>& parts) const {
  bool wanted[3] = {};
  for (const Part one : parts) wanted[static_cast<std::size_t>(one)] = true;
  Samples chosen{.stride = samples.stride};
  for (std::int64_t i = 0; i < samples.size(); ++i) {
    if (!wanted[static_cast<std::size_t>(part[i])]) continue;
    chosen.cells.insert(chosen.cells.end(), samples.row(i), samples.row(i) + samples.stride);
  }
  return chosen;
}

std::map<std::string, std::string> data_digests(const DataSet& data) {
  std::map<std::string, std::string> digests;
  Hasher samples;
  hash_cell(data.samples, data.samples.stride - 1, samples);
  samples.update(std::as_bytes(std::span(data.part)));
  digests["samples"] = samples.hex();
  if (data.numbers > 0) {
    Hasher numbers;
    for (std::int64_t i = 0; i < data.numbers; ++i)
      hash_number(data.samples, data.number_cell(i), numbers);
    digests["numbers"] = numbers.hex();
  }
  for (const IdColumn& column : data.columns) {
    Hasher hasher;
    const std::string keys = column.keys.id_map().to_bytes();
    hasher.update(std::as_bytes(std::span(keys)));
    for (std::int64_t i = 0; column.cell >= 0 && i < column.width; ++i)
      hash_cell(data.samples, column.cell + i, hasher);
    hasher.update(std::as_bytes(std::span(column.lists.splits)));
    hasher.update(std::as_bytes(std::span(column.lists.ids)));
    digests["ids " + column.name] = hasher.hex();
  }
  return digests;
}

}  // namespace embertable::jobs
