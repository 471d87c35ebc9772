"""Names and arguments of TensorFlow's TPUEmbedding, so that code for it changes imports and little else.

    from embertable import tpu_embedding as tpu

    strategy = tpu.TPUStrategy(replicas_per_host=2)
    with strategy.scope():
        embedding = tpu.TPUEmbedding(features, tpu.SGD(0.1))

Results are NumPy arrays, or what `outputs` names; ids may also be tensors of TensorFlow, PyTorch and JAX. What stays different is
in docs/semantics.md, section "In Python".
"""

from .. import (DataError, FixedShardsPartitioner, MaxSizePartitioner, MinSizePartitioner, Partitioner, PerReplica,
                QuantizationConfig, ShardedVariable, Variable, create_on_hosts, serving_embedding_lookup)
from ..gradient_interception import (create_dummy_table_variables, get_gradients_through_compute_gradients,
                                     get_gradients_through_dummy_table_variables,
                                     hook_dummy_table_variables_to_activations)
from .checkpoint import Checkpoint, CheckpointManager, CheckpointStatus, latest_checkpoint
from .config import CustomCombiner, FeatureConfig, RowIdInitializer, ShardInfo, TableConfig
from .creation import make_sharded_variable_creator
from .engine import TPUEmbedding, TPUEmbeddingForServing, TPUEmbeddingV0, initialize_tpu_system
from .optimizers import FTRL, SGD, Adagrad, AdagradMomentum, Adam
from .strategy import (InputContext, InputOptions, ReplicaContext, TPUStrategy, get_list_of_hosts, get_replica_context,
                       get_strategy)

cpu_embedding_lookup = serving_embedding_lookup

__all__ = [
    "FTRL", "SGD", "Adagrad", "AdagradMomentum", "Adam", "Checkpoint", "CheckpointManager", "CheckpointStatus", "CustomCombiner",
    "DataError", "FeatureConfig", "FixedShardsPartitioner", "InputContext", "InputOptions", "MaxSizePartitioner", "MinSizePartitioner",
    "Partitioner", "PerReplica", "QuantizationConfig", "ReplicaContext", "RowIdInitializer", "ShardInfo", "ShardedVariable", "TPUEmbedding",
    "TPUEmbeddingForServing", "TPUEmbeddingV0", "TPUStrategy", "TableConfig", "Variable", "cpu_embedding_lookup",
    "create_dummy_table_variables", "create_on_hosts", "get_gradients_through_compute_gradients",
    "get_gradients_through_dummy_table_variables", "get_list_of_hosts", "get_replica_context", "get_strategy",
    "hook_dummy_table_variables_to_activations", "initialize_tpu_system", "latest_checkpoint",
    "make_sharded_variable_creator", "serving_embedding_lookup",
]
