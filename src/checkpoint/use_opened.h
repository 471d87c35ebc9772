#pragma once

#include <optional>

#include "embertable/checkpoint.h"
#include "embertable/config.h"
#include "embertable/serving.h"
#include "embertable/shape.h"

namespace embertable::checkpoint {

class Reader;

// Uses of a step that is open, for a program that has checked what the step holds: whoever saves a
// run in its place meanwhile changes nothing here.

/// Does what `engine.restore(reader.directory())` does. Every one of several hosts gives a reader
/// of the same step.
RestoreReport restore_opened(Embedding& engine, const Reader& reader);

/// Does what `ServingEmbedding::open(reader.directory(), features)` does; without features, all
/// tables of the step are opened.
ServingEmbedding serve_opened(const Reader& reader,
                              std::optional<Nested<FeatureConfig>> features = {});

}  // namespace embertable::checkpoint
