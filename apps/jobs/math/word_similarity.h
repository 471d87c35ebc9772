#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "apps/jobs/data/corpus.h"
#include "apps/jobs/text/broken_record.h"
#include "embertable/id_map.h"

namespace embertable::jobs {

/// Pairs of words with the similarity that people gave them.
struct WordPair {
  std::int64_t first = 0, second = 0;  ///< rows
  double score = 0;
};

struct WordPairs {
  std::vector<WordPair> pairs;
  LeftOut left_out;  ///< broken records
};

/// Reads a CSV file with a header: word, word, score. Words are spelt as the rule spells tokens;
/// pairs with a word that has no row are skipped. Leaves out at most the given number of broken
/// records. Throws what CsvReader throws.
WordPairs read_word_pairs(const std::string& path, const IdMap& words, TokenRule rule,
                          std::int64_t skip_bad = 0);

/// Returns Spearman's rank correlation; equal values get the mean of their ranks; 0 if either has
/// only one value, NaN if either has a NaN. Requires: a.size() == b.size().
double spearman(std::span<const double> a, std::span<const double> b);

/// Returns the cosine of two rows of `dim` floats; 0 if one is zero, NaN for numbers that
/// are not finite.
double cosine(const float* a, const float* b, std::int64_t dim) noexcept;

}  // namespace embertable::jobs
