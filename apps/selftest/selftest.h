#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "apps/selftest/vectors.h"

namespace embertable::selftest {

/// What the checks of one rule or combiner gave.
struct Line {
  std::string name;
  std::int64_t vectors = 0;   ///< published ones, of one level
  std::int64_t programs = 0;  ///< random ones, of one level
  double worst = 0;           ///< deviation from what is expected, in units of what is allowed
  std::vector<std::string> digests;   ///< digests of the programs' results, by level
  std::vector<std::string> failures;  ///< each naming what, where, level, and both numbers

  bool ok() const noexcept { return failures.empty(); }
};

struct Report {
  std::string version;   ///< version of Embertable
  int numerics = 0;      ///< kNumericsVersion
  std::string compiler;  ///< compiler that built this program
  std::string cpu;       ///< model name, "" where the system does not say
  std::vector<std::string> levels;
  std::vector<Line> rules, combiners;

  bool ok() const noexcept;
};

/// Steps every rule through an engine, at every level that the CPU has: the published vectors, to
/// the bit where they have bits; and fixed random programs, against a reference in double and level
/// against level. Looks rows up, and applies gradients, with every combiner. Forces levels by the
/// environment: see ForcedLevel. A rule that cannot be
/// tried, or that lacks reference or vector, is a failure.
Report run(const std::vector<GoldenVector>& vectors = published_vectors());

/// One rule or one combiner ("sum").
Line check_rule(const std::string& rule, const std::vector<GoldenVector>& vectors);
Line check_combiner(const std::string& combiner);
std::vector<std::string> combiners();

}  // namespace embertable::selftest
