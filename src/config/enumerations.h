// The enumerations of configurations that several files check.
#pragma once

#include "base/enumerators.h"
#include "embertable/config.h"
#include "embertable/embedding.h"
#include "embertable/strategy.h"

namespace embertable {

template <>
struct Enumerators<Combiner> : EnumeratorRange<Combiner::kSum, Combiner::kSqrtN> {};
template <>
struct Enumerators<Sharding> : EnumeratorRange<Sharding::kDiv, Sharding::kMod> {};
template <>
struct Enumerators<ApiRevision>
    : EnumeratorRange<ApiRevision::kOutputShapes, ApiRevision::kBatchSize> {};

}  // namespace embertable
