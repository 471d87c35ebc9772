#pragma once

// Includes all of this folder. Six headers are enough for most programs: config.h and optimizer.h
// say what there is to train, batch.h what to look up, embedding.h trains, checkpoint.h saves,
// serving.h looks up in what is saved. An object that has been moved from may only be assigned to
// or destroyed, unless its class says more.
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
#include "embertable/optimizer_rules.h"
#include "embertable/serving.h"
#include "embertable/shape.h"
#include "embertable/strategy.h"
#include "embertable/version.h"
