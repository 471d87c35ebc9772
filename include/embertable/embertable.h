#pragma once

// Everything of the library.
#include "embertable/batch.h"
#include "embertable/checkpoint.h"
#include "embertable/config.h"
#include "embertable/custom_rule.h"
#include "embertable/embedding.h"
#include "embertable/errors.h"
#include "embertable/executor.h"
#include "embertable/id_map.h"
#include "embertable/initializer.h"
#include "embertable/interleave.h"
#include "embertable/nested.h"
#include "embertable/optimizer.h"
#include "embertable/revision.h"
#include "embertable/serving.h"
#include "embertable/shape.h"
#include "embertable/strategy.h"
