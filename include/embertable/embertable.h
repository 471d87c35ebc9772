#pragma once

// Includes engines, serving, configuration, optimizers and checkpoints.
#include "embertable/batch.h"
#include "embertable/checkpoint.h"
#include "embertable/config.h"
#include "embertable/direct_embedding.h"
#include "embertable/embedding.h"
#include "embertable/errors.h"
#include "embertable/exchange.h"
#include "embertable/executor.h"
#include "embertable/id_map.h"
#include "embertable/initializer.h"
#include "embertable/optimizer.h"
#include "embertable/serving.h"
#include "embertable/shape.h"
#include "embertable/strategy.h"
#include "embertable/version.h"
