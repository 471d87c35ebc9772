#pragma once

// Includes TensorFlow's formats and APIs.
#include "embertable/tensorflow/custom_combiner.h"
#include "embertable/tensorflow/gradient_interception.h"
#include "embertable/tensorflow/interleave.h"
#include "embertable/tensorflow/object_graph.h"
#include "embertable/tensorflow/optimization_parameters.h"
#include "embertable/tensorflow/optimizer_messages.h"
#include "embertable/tensorflow/parameters.h"
#include "embertable/tensorflow/partitioned_csr.h"
#include "embertable/tensorflow/sequential_scope.h"
#include "embertable/tensorflow/sharded_bundle.h"
#include "embertable/tensorflow/sparse_core.h"
#include "embertable/tensorflow/step_descriptor.h"
#include "embertable/tensorflow/tensor_bundle.h"
#include "embertable/tensorflow/tpu_embedding_configuration.h"
#include "embertable/tensorflow/v1.h"
