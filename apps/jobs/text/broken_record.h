#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "embertable/errors.h"

namespace embertable::jobs {

/// Error of a record, line or token that breaks a rule: "FILE:LINE:COLUMN: RULE, got ...". Reading
/// may continue after it.
class BrokenRecord : public ValueError {
 public:
  /// `got` is what stands there instead, or "".
  BrokenRecord(std::string position, std::string rule, const std::string& got = "")
      : ValueError(position + ": " + rule + (got.empty() ? "" : ", got " + got)),
        position_(std::move(position)),
        rule_(std::move(rule)) {}

  /// The same error with more to its text.
  BrokenRecord(const BrokenRecord& error, const std::string& more)
      : ValueError(error.what() + more), position_(error.position_), rule_(error.rule_) {}

  const std::string& position() const noexcept { return position_; }
  const std::string& rule() const noexcept { return rule_; }

 private:
  std::string position_, rule_;
};

/// Number of bytes of a broken text that a message shows.
constexpr std::size_t kShownBytes = 60;

/// What was left out, summed up by the rule that it breaks, which names its column.
struct LeftOut {
  struct Reason {
    std::string rule;
    std::int64_t count = 0;
    std::string first;  ///< "FILE:LINE:COLUMN"
  };
  std::vector<Reason> reasons;  ///< in the order in which they were met
  std::int64_t read = 0;        ///< records, lines or tokens that were read, broken ones included

  std::int64_t total() const noexcept;
  LeftOut& operator+=(const LeftOut& other);

  /// Passes the fields to DataCache.
  template <class File>
  void fields(File& file) {
    file(read);
    file.size(reasons);
    for (Reason& reason : reasons) file(reason.rule, reason.count, reason.first);
  }
};

/// How much may be broken before that is an error: a number of records, lines and tokens, or a
/// share of them.
class SkipBad {
 public:
  SkipBad(std::int64_t most = 0) : most_(most) {}  // NOLINT(google-explicit-constructor)

  /// Parses "12" or "1.5%". Throws ValueError naming the rule.
  static SkipBad parse(const std::string& text);

  /// Returns the text that `parse` reads as this. Runs save it, and keys of caches have it.
  std::string text() const;

  /// Returns the number that may be left out before reading must stop; a share is judged when all
  /// is read.
  std::int64_t most() const noexcept { return percent_ > 0 ? INT64_MAX : most_; }
  double share() const noexcept { return percent_ / 100; }  ///< 0: a number

  /// Returns what may be left out besides.
  SkipBad after(const LeftOut& left_out) const noexcept;

 private:
  std::int64_t most_ = 0;
  double percent_ = 0;  ///< 0: a number may be left out
};

/// Throws ValueError if more is left out than the share that may be.
void check_share(const SkipBad& skip_bad, const LeftOut& left_out);

/// Counts what is left out, up to a maximum.
class LeftOutCounter {
 public:
  explicit LeftOutCounter(std::int64_t most) noexcept : most_(most) {}

  /// Counts one more, or if that would be one too many throws BrokenRecord that says so. Called in
  /// a handler of BrokenRecord.
  void count();
  void count_read() noexcept { ++left_out_.read; }
  const LeftOut& so_far() const noexcept { return left_out_; }

 private:
  std::int64_t most_;
  LeftOut left_out_;
};

}  // namespace embertable::jobs
