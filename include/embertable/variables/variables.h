#pragma once

// Includes tensors and sharded variables.
#include "embertable/variables/embedding_lookup.h"
#include "embertable/variables/export_scope.h"
#include "embertable/variables/partitioner.h"
#include "embertable/variables/sharded_variable.h"
#include "embertable/variables/tensor.h"
#include "embertable/variables/tensor_index.h"
#include "embertable/variables/tensor_operators.h"
#include "embertable/variables/variable_checkpoint.h"
#include "embertable/variables/variable_creator.h"
