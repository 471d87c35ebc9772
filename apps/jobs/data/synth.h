#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "apps/jobs/spec/split.h"

namespace embertable::jobs {

/// A column of synthetic data: keys 0 .. rows - 1 of a table, one in a field or a list.
struct SynthTable {
  std::string name;
  std::int64_t rows = 0;
  std::int64_t least = 1, most = 1;  ///< keys in a field, each number equally likely
  bool lists() const noexcept { return least != 1 || most != 1; }
};

/// Describes synthetic records: tables that are looked up, and labels of a known logistic model,
///   P(label 1) = 1 / (1 + exp(-(bias + sum over tables of the mean weight of the field's keys))),
/// whose weights are normal.
struct SynthSpec {
  std::vector<SynthTable> tables;
  std::int64_t records = 0;
  double skew = 1.05;       ///< exponent of the keys' Zipf distribution; 0: all equally likely
  double positives = 0.25;  ///< probability of label 1 where all weights are 0
  double spread = 1;  ///< standard deviation of the weights' sum, for fields with one key each
  std::uint64_t seed = 1;
  bool commas = false;      ///< .csv instead of .tsv
  bool compressed = false;  ///< .gz

  static constexpr std::int64_t kMostKeys = 4096;  ///< in a field
};

/// Loss of the model that drew the labels: no other model does better, except by chance.
struct SynthLoss {
  std::int64_t records = 0;
  std::int64_t positives = 0;
  double logloss = 0;  ///< mean; NaN without records, in JSON null
};

struct SynthFiles {
  std::filesystem::path data;   ///< STEM.tsv, .csv or either with .gz
  std::filesystem::path job;    ///< STEM.toml
  std::filesystem::path truth;  ///< STEM.json
};

struct SynthReport {
  SynthFiles files;
  SynthLoss all;
  SynthLoss parts[3];  ///< by Part, as a job cuts them whose [split] has neither `by` nor `salt`
};

/// Throws ValueError naming the field and the rule that it breaks.
void validate(const SynthSpec& spec);

/// Returns the files that write_synth writes.
SynthFiles synth_files(const SynthSpec& spec, const std::filesystem::path& stem);

/// Writes the data; a job that trains on them; and what the losses are. Replaces files of these
/// names, each once it is complete. Keys of a list have "|" between them. The same spec gives the
/// same bytes. Memory does not grow with records or tables. Throws ValueError as `validate`,
/// IoError.
SynthReport write_synth(const SynthSpec& spec, const std::filesystem::path& stem);

}  // namespace embertable::jobs
