#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace embertable::jobs {

/// The words of a table's rows in a file whose readers find rows by their words: no two are equal.
/// A row keeps its own word, unless another row has the same one; then each of them is followed by
/// `_` and what tells the rows apart. Holds eight bytes a row while it is made, and for each such
/// word after that.
class RowWords {
 public:
  using TextOfRow = std::function<std::string(std::int64_t)>;

  /// Throws ValueError if two rows would have one word even so.
  RowWords(std::int64_t rows, TextOfRow word, TextOfRow told_apart_by);

  std::string operator()(std::int64_t row) const;

 private:
  TextOfRow word_, told_apart_by_;
  std::vector<std::uint64_t> shared_;  ///< hashes of words that rows share, rising
};

}  // namespace embertable::jobs
