#include "apps/convert/row_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "embertable/errors.h"

namespace embertable::jobs {
namespace {

std::uint64_t hash_of(const std::string& word) { return std::hash<std::string>()(word); }

/// Returns the hashes that more than one row's word has, rising.
std::vector<std::uint64_t> repeated(std::int64_t rows, const RowWords::TextOfRow& word) {
  std::vector<std::uint64_t> hashes(static_cast<std::size_t>(rows));
  for (std::int64_t row = 0; row < rows; ++row) hashes[row] = hash_of(word(row));
  std::ranges::sort(hashes);
  std::vector<std::uint64_t> found;
  for (std::size_t i = 1; i < hashes.size(); ++i) {
    if (hashes[i] != hashes[i - 1]) continue;
    if (found.empty() || found.back() != hashes[i]) found.push_back(hashes[i]);
  }
  return found;
}

}  // namespace

RowWords::RowWords(std::int64_t rows, TextOfRow word, TextOfRow told_apart_by)
    : word_(std::move(word)),
      told_apart_by_(std::move(told_apart_by)),
      shared_(repeated(rows, word_)) {
  if (shared_.empty()) return;
  const std::vector<std::uint64_t> still_shared = repeated(rows, std::cref(*this));
  for (std::int64_t row = 0; row < rows && !still_shared.empty(); ++row) {
    const std::string text = (*this)(row);
    if (std::ranges::binary_search(still_shared, hash_of(text)))
      throw ValueError(fmt::format(
          "a word must name one row, got '{}' for row {} and another one; the label 'row' "
          "takes numbers",
          text, row));
  }
}

std::string RowWords::operator()(std::int64_t row) const {
  std::string text = word_(row);
  if (std::ranges::binary_search(shared_, hash_of(text))) text += "_" + told_apart_by_(row);
  return text;
}

}  // namespace embertable::jobs
