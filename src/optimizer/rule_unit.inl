// Compiles rules together. A unit, which CMakeLists.txt makes, names in EMBERTABLE_RULES the file
// that includes its rules. Each rule is included four times: where EMBERTABLE_LEVEL is defined, it
// gives its formula, once for each SIMD level; elsewhere it gives its RuleSpec.

#include <cstdint>
#include <string_view>

#include "base/bfloat16.h"
#include "base/random.h"
#include "embertable/errors.h"
#include "embertable/optimizer.h"
#include "kernels/update.h"
#include "optimizer/bias_correction.h"
#include "optimizer/gradient_sums.h"
#include "optimizer/registry.h"
#include "optimizer/rule_spec.h"

#define EMBERTABLE_LEVEL_BODY "optimizer/formula.inl"
#include "kernels/for_each_level.inl"

/// Initializes RuleSpec::forms with a formula.
#define EMBERTABLE_FORMS(Formula)                                                   \
  {                                                                                 \
    scalar::formula_forms<scalar::Formula>(), avx2::formula_forms<avx2::Formula>(), \
        avx512::formula_forms<avx512::Formula>()                                    \
  }

namespace embertable::rules {
#include EMBERTABLE_RULES
}  // namespace embertable::rules
