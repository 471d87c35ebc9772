"""TensorFlow's first TPUEmbedding API: tables and features by name, one global batch size, and batches, activations and
gradients core by core. docs/v1.md says what became of each call.

>>> from embertable import v1
>>> embedding = v1.TPUEmbedding({"t": v1.TableConfig(4, 1, embertable.Initializer.zeros())}, {"f": v1.FeatureConfig("t")}, 2,
...                             v1.TRAINING, optimization_parameters=v1.StochasticGradientDescentParameters(0.5))
>>> embedding.enqueue([{"f": v1.EnqueueData([1, 3])}])
>>> activations = embedding.get_activations()
>>> embedding.send_gradients([{"f": activations[0]["f"] - 1}])
>>> embedding.read_rows("t", [0, 1]).tolist()
[[0.0], [0.5]]
"""

from __future__ import annotations

import collections
import collections.abc
import dataclasses
import logging
from typing import TYPE_CHECKING, Any, Callable, Mapping, Optional, Sequence

from ._core import _v1

if TYPE_CHECKING:
    from . import CallerState, CheckpointRun, GradientRegistry, IdMap, Initializer, InterleavedLayout, RestoreReport, TableInfo

INFERENCE = 1
TRAINING = 2


@dataclasses.dataclass(frozen=True)
class _Parameters:
    def __post_init__(self) -> None:
        _v1.check_parameters(self)


@dataclasses.dataclass(frozen=True, kw_only=True)
class _CommonParameters(_Parameters):
    use_gradient_accumulation: bool = True
    clip_weight_min: Optional[float] = None
    clip_weight_max: Optional[float] = None
    weight_decay_factor: Optional[float] = None
    multiply_weight_decay_factor_by_learning_rate: Optional[bool] = None
    clip_gradient_min: Optional[float] = None
    clip_gradient_max: Optional[float] = None


@dataclasses.dataclass(frozen=True)
class AdagradParameters(_CommonParameters):
    """Adagrad: learning_rate >= 0, and initial_accumulator > 0.

    The keywords are those of every class: clip_gradient_min and clip_gradient_max limit a row's summed gradient,
    clip_weight_min and clip_weight_max the row after its step; weight_decay_factor, times the rate with
    multiply_weight_decay_factor_by_learning_rate, shrinks it before; use_gradient_accumulation=False makes every occurrence of
    a row a step of its own. None: no limit, no decay. Raises ValueError and TypeError naming the field.

    >>> v1.AdagradParameters(0.1).initial_accumulator
    0.1
    """

    learning_rate: float
    initial_accumulator: float = 0.1


@dataclasses.dataclass(frozen=True)
class ProximalAdagradParameters(_CommonParameters):
    """Adagrad with l1_regularization_strength and l2_regularization_strength, both >= 0; the rest as of AdagradParameters.

    >>> v1.ProximalAdagradParameters(0.1).l1_regularization_strength
    0.0
    """

    learning_rate: float
    initial_accumulator: float = 0.1
    l1_regularization_strength: float = 0.0
    l2_regularization_strength: float = 0.0


@dataclasses.dataclass(frozen=True)
class AdamParameters(_CommonParameters):
    """Adam. beta1, beta2 in [0, 1), epsilon > 0; lazy_adam=False steps every row and needs accumulation; sum_inside_sqrt: the
    divisor is sqrt(v + epsilon**2), else sqrt(v) + epsilon; the rest as of AdagradParameters.

    >>> v1.AdamParameters(0.1).beta2
    0.999
    """

    learning_rate: float
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-08
    lazy_adam: bool = True
    sum_inside_sqrt: bool = True


@dataclasses.dataclass(frozen=True)
class FtrlParameters(_CommonParameters):
    """FTRL. learning_rate_power <= 0; initial_accumulator_value, > 0 unless allow_zero_accumulator; beta,
    l1_regularization_strength and l2_regularization_strength >= 0; multiply_linear_by_learning_rate: how the linear slot is
    kept; the rest as of AdagradParameters.

    >>> v1.FtrlParameters(0.1).learning_rate_power
    -0.5
    """

    learning_rate: float
    learning_rate_power: float = -0.5
    initial_accumulator_value: float = 0.1
    l1_regularization_strength: float = 0.0
    l2_regularization_strength: float = 0.0
    multiply_linear_by_learning_rate: bool = False
    beta: float = 0
    allow_zero_accumulator: bool = False


@dataclasses.dataclass(frozen=True)
class ProximalYogiParameters(_CommonParameters):
    """Yogi with l1_regularization_strength and l2_regularization_strength >= 0. beta1, beta2 in [0, 1), epsilon > 0;
    initial_accumulator_value: of both slots; the rest as of AdagradParameters.

    >>> v1.ProximalYogiParameters().epsilon
    0.001
    """

    learning_rate: float = 0.01
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-3
    l1_regularization_strength: float = 0.0
    l2_regularization_strength: float = 0.0
    initial_accumulator_value: float = 1e-6


@dataclasses.dataclass(frozen=True)
class MomentumParameters(_CommonParameters):
    """Momentum: momentum in [0, 1], use_nesterov for Nesterov's form; the rest as of AdagradParameters.

    >>> v1.MomentumParameters(0.1, 0.9).use_nesterov
    False
    """

    learning_rate: float
    momentum: float
    use_nesterov: bool = False


@dataclasses.dataclass(frozen=True)
class RMSPropParameters(_CommonParameters):
    """RMSProp: rho and momentum, epsilon > 0; the rest as of AdagradParameters.

    >>> v1.RMSPropParameters(0.1, 0.9, 0.5, 1e-8).rho
    0.9
    """

    learning_rate: float
    rho: float
    momentum: float
    epsilon: float


@dataclasses.dataclass(frozen=True)
class StochasticGradientDescentParameters(_CommonParameters):
    """Gradient descent. Gradients are summed before the step if they have limits; the rest as of AdagradParameters.

    >>> v1.StochasticGradientDescentParameters(0.1).learning_rate
    0.1
    """

    learning_rate: float


@dataclasses.dataclass(frozen=True)
class FrequencyEstimatorParameters(_Parameters):
    """Estimates how often a row is named, by tau, max_delta, outlier_threshold and weight_exponent: see the rule
    'frequency_estimator' in docs/optimizers.md. Tables are of dimension 1, whose rows should start at max_delta. The rule takes the rate for the
    number of the step, so a table needs a learning_rate_fn that returns its step.

    >>> v1.FrequencyEstimatorParameters(0.1, 10, 2.0, 1.0).tau
    0.1
    """

    tau: float
    max_delta: float
    outlier_threshold: float
    weight_exponent: float


@dataclasses.dataclass(frozen=True)
class TableConfig:
    """One table of vocabulary_size rows of `dimension` floats.

    initializer: an embertable.Initializer; None: truncated normal of stddev 1 / sqrt(dimension). combiner: 'mean', 'sum',
    'sqrtn', or None for features of one id a sample. learning_rate, or learning_rate_fn(global_step): instead of the
    parameters' rate; tables with the same function ask it once a step. optimization_parameters: instead of the engine's.
    hot_id_replication is only kept. Raises ValueError, TypeError naming the field.

    >>> v1.TableConfig(8, 4, combiner="sum").dimension
    4
    """

    vocabulary_size: int
    dimension: int
    initializer: Optional[Initializer] = None
    combiner: Optional[str] = "mean"
    hot_id_replication: bool = False
    learning_rate: Optional[float] = None
    learning_rate_fn: Optional[Callable[[int], float]] = None
    optimization_parameters: Any = None

    def __post_init__(self) -> None:
        _v1.check_table(self)


@dataclasses.dataclass(frozen=True)
class FeatureConfig:
    """One feature: table_id, the name of its table; max_sequence_length, 0, or the length of the sequence that its ids make.
    weight_key is only kept. Raises ValueError, TypeError naming the field.

    >>> v1.FeatureConfig("video", max_sequence_length=3).table_id
    'video'
    """

    table_id: str
    max_sequence_length: int = 0
    weight_key: Optional[str] = None

    def __post_init__(self) -> None:
        _v1.check_feature(self)


@dataclasses.dataclass(frozen=True, eq=False)
class EnqueueData:
    """The ids of one feature on one core: embedding_indices [n]; sample_indices [n, 2], sample and position of each, in any
    order (None: one id for each sample); aggregation_weights [n] (None: 1). Arrays are borrowed for the call.

    >>> v1.EnqueueData([3, 5, 7], [[0, 0], [0, 1], [1, 0]]).embedding_indices
    [3, 5, 7]
    """

    embedding_indices: Any
    sample_indices: Any = None
    aggregation_weights: Any = None

    @staticmethod
    def from_sparse_tensor(sp_tensor: Any, weights: Any = None) -> EnqueueData:
        """Gives the data of an sp_tensor: of what has `indices` and `values`, such as SparseIds or tf.SparseTensor; weights: an array, or what has values.

        >>> v1.EnqueueData.from_sparse_tensor(embertable.SparseIds([[0, 0], [1, 0]], [4, 2], (2, 1))).sample_indices.tolist()
        [[0, 0], [1, 0]]
        """
        return EnqueueData(sp_tensor.values, sp_tensor.indices, getattr(weights, "values", weights))


@dataclasses.dataclass(frozen=True, eq=False)
class RaggedEnqueueData:
    """The ids of one feature on one core, sample by sample: embedding_indices [n]; row_splits [samples + 1] (None: one id
    for each sample); aggregation_weights [n] (None: 1). Arrays are borrowed for the call.

    >>> v1.RaggedEnqueueData([3, 5, 7], [0, 2, 3]).row_splits
    [0, 2, 3]
    """

    embedding_indices: Any
    row_splits: Any = None
    aggregation_weights: Any = None

    @staticmethod
    def from_ragged_tensor(rg_tensor: Any, weights: Any = None) -> RaggedEnqueueData:
        """Gives the data of an rg_tensor: of what has `row_splits` and `values`, such as RaggedIds or tf.RaggedTensor; weights: an array, or what has values.

        >>> v1.RaggedEnqueueData.from_ragged_tensor(embertable.RaggedIds([4, 2, 0], [0, 1, 3])).row_splits.tolist()
        [0, 1, 3]
        """
        return RaggedEnqueueData(rg_tensor.values, rg_tensor.row_splits, getattr(weights, "values", weights))


@dataclasses.dataclass(frozen=True)
class DeviceConfig:
    """Describes the machine: each host owns a shard of every table and drives num_cores / num_hosts cores; in one process
    hosts are simulated on threads. job_name has no effect.

    >>> v1.DeviceConfig(num_hosts=1, num_cores=2).num_cores
    2
    """

    num_hosts: int = 1
    num_cores: int = 1
    job_name: Optional[str] = None


def _check_configs(what: str, configs: Any, kind: type) -> None:
    if not isinstance(configs, collections.abc.Mapping):
        raise TypeError(f"{what} must be a dict of configurations by name, got {configs!r}")
    for name, config in configs.items():
        if not isinstance(config, kind):
            raise TypeError(f"{what}[{name!r}] must be a {kind.__name__} of embertable.v1, got {type(config).__name__}")


class TPUEmbedding:
    """The engine of the first API: its tables and features are in the order of their names, and its batches have one size.

    table_to_config_dict, feature_to_config_dict: by name. batch_size: for all cores together, a multiple of their number.
    mode: TRAINING or INFERENCE. optimization_parameters: of tables without their own. partition_strategy: 'div' or 'mod',
    which host owns a row. device_config: a DeviceConfig, one core if None. pipeline_execution_with_tensor_core: looks a batch up
    before the update of the one before. profile_data_directory: is written into the configuration. threads, seed, queue_capacity, log: as of an
    Embedding and its strategy. master, cluster_def and master_job_name have no effect.

    Any number of threads may enqueue; other calls wait for each other. A call that raises leaves the object as it was.

    Raises ValueError naming field, table or feature: also for a table that no feature uses, an unknown table, and in mode
    TRAINING a table without parameters.

    >>> embedding = v1.TPUEmbedding({"t": v1.TableConfig(4, 2)}, {"f": v1.FeatureConfig("t")}, 2, v1.INFERENCE)
    >>> embedding.enqueue([{"f": v1.RaggedEnqueueData([1, 3, 3], [0, 1, 3])}])
    >>> embedding.get_activations()[0]["f"].shape
    (2, 2)
    """

    def __init__(
        self,
        table_to_config_dict: Mapping[str, TableConfig],
        feature_to_config_dict: Mapping[str, FeatureConfig],
        batch_size: int,
        mode: int,
        master: Any = None,
        optimization_parameters: Any = None,
        cluster_def: Any = None,
        pipeline_execution_with_tensor_core: bool = False,
        partition_strategy: str = "div",
        profile_data_directory: Optional[str] = None,
        device_config: Optional[DeviceConfig] = None,
        master_job_name: Optional[str] = None,
        *,
        threads: Optional[int] = None,
        seed: int = 0,
        queue_capacity: int = 4,
        log: Optional[Callable[[str], object]] = None,
    ) -> None:
        _check_configs("table_to_config_dict", table_to_config_dict, TableConfig)
        _check_configs("feature_to_config_dict", feature_to_config_dict, FeatureConfig)
        if device_config is not None and not isinstance(device_config, DeviceConfig):
            raise TypeError(f"device_config must be a DeviceConfig or None, got {type(device_config).__name__}")
        machine = device_config or DeviceConfig()
        self._tables = dict(sorted(table_to_config_dict.items()))
        self._features = dict(sorted(feature_to_config_dict.items()))
        self._optimization_parameters = optimization_parameters
        self._registry: Optional[GradientRegistry] = None
        self._engine = _v1.TPUEmbedding(
            self._tables, self._features, batch_size, mode, optimization_parameters,
            pipelined=pipeline_execution_with_tensor_core, partition_strategy=partition_strategy,
            profile_data_directory=profile_data_directory or "", num_hosts=machine.num_hosts,
            num_cores=machine.num_cores, threads=threads, seed=seed, queue_capacity=queue_capacity,
            log=log or logging.getLogger("embertable").warning)

    def __repr__(self) -> str:
        rows = sum(table.vocabulary_size for table in self._tables.values())
        return (f"v1.TPUEmbedding({len(self._tables)} tables ({rows} rows), {len(self._features)} features, batch size "
                f"{self.batch_size} on {self.num_cores} cores, step {self.step})")

    def __reduce__(self) -> Any:
        raise TypeError("a v1.TPUEmbedding cannot be pickled or copied: save it, and restore into one made in the other "
                        "place")

    @property
    def table_to_config_dict(self) -> dict[str, TableConfig]:
        """The tables by name, in the order of their names."""
        return dict(self._tables)

    @property
    def feature_to_config_dict(self) -> dict[str, FeatureConfig]:
        """The features by name, in the order of their names."""
        return dict(self._features)

    @property
    def table_to_features_dict(self) -> dict[str, list[str]]:
        """By table the names of its features, in the order of their names."""
        features = collections.defaultdict(list)
        for name, feature in self._features.items():
            features[feature.table_id].append(name)
        return {table: features[table] for table in self._tables}

    @property
    def optimization_parameters(self) -> Any:
        """Those of tables without their own."""
        return self._optimization_parameters

    @property
    def layout(self) -> InterleavedLayout:
        """The layout of a core's features in the arrays of their tables."""
        return self._engine.layout

    @property
    def batch_size(self) -> int:
        """Samples of a batch, of all cores."""
        return self._engine.batch_size

    @property
    def batch_size_per_core(self) -> int:
        """Samples of a core's part of a batch."""
        return self._engine.batch_size_per_core

    @property
    def num_hosts(self) -> int:
        return self._engine.num_hosts

    @property
    def num_cores(self) -> int:
        """Cores of all hosts."""
        return self._engine.num_cores

    @property
    def num_cores_per_host(self) -> int:
        return self.num_cores // self.num_hosts

    @property
    def mode(self) -> int:
        """TRAINING or INFERENCE."""
        return self._engine.mode

    @property
    def step(self) -> int:
        """Training batches whose gradients have been applied so far."""
        return self._engine.step

    @property
    def tables(self) -> list[TableInfo]:
        """What the engine has of each table, in the order of their names."""
        return self._engine.tables

    @property
    def gradient_registry(self) -> GradientRegistry:
        """Where `embertable.gradient_interception` keeps the gradients of one core; for more, make one for each core."""
        if self._registry is None:
            from ._core import GradientRegistry
            self._registry = GradientRegistry(self.layout)
        return self._registry

    def create_variables(self) -> None:
        """Creates tables and slots; the first enqueue does it too.

        >>> embedding = v1.TPUEmbedding({"t": v1.TableConfig(4, 2)}, {"f": v1.FeatureConfig("t")}, 2, v1.INFERENCE)
        >>> embedding.create_variables()
        >>> embedding.read_rows("t", [0]).shape
        (1, 2)
        """
        self._engine.create_variables()

    def enqueue(self, enqueue_datas_list: Sequence[Mapping[str, Any]], mode_override: Optional[int] = None, *,
                timeout: float = 0) -> None:
        """Checks and copies a batch.

        enqueue_datas_list: a dict for each core, host by host, of EnqueueData, or of RaggedEnqueueData, by feature; each has
        every feature. mode_override: INFERENCE or TRAINING instead of the engine's. timeout: seconds to wait for another thread
        to make room in a full queue; Ctrl-C ends the wait.

        Raises ValueError naming the dict's position and the features that are missing or unknown, DataError naming feature,
        core, sample and position, RuntimeError where the queue is full.

        >>> embedding = v1.TPUEmbedding({"t": v1.TableConfig(4, 2)}, {"f": v1.FeatureConfig("t")}, 2, v1.INFERENCE)
        >>> embedding.enqueue([{"f": v1.EnqueueData([1, 3])}])
        """
        self._engine.enqueue(enqueue_datas_list, mode_override, timeout)

    def get_activations(self, *, timeout: float = 0) -> list[dict[str, Any]]:
        """Gives the activations of the oldest batch: by core a dict by feature of float32 arrays [batch_size_per_core, dimension],
        or [batch_size_per_core, max_sequence_length, dimension]. `embertable.interleave(layout, ...)` makes those of each
        table. timeout: seconds to wait for another thread's batch; Ctrl-C ends the wait. Raises RuntimeError if there is none.

        >>> embedding = v1.TPUEmbedding({"t": v1.TableConfig(4, 2, embertable.Initializer.row_id())},
        ...                             {"f": v1.FeatureConfig("t")}, 2, v1.INFERENCE)
        >>> embedding.enqueue([{"f": v1.EnqueueData([1, 3])}])
        >>> embertable.interleave(embedding.layout, embedding.get_activations()[0])["t"].tolist()
        [[1.0, 1.0], [3.0, 3.0]]
        """
        return self._engine.get_activations(timeout)

    def send_gradients(self, gradients: Sequence[Mapping[str, Any]], step: Optional[int] = None) -> None:
        """Updates the rows of the batch whose activations were got last.

        gradients: a dict for each core with the gradient of every feature, None for zeros. step: the global step, given
        to each learning_rate_fn once.

        Raises RuntimeError in mode INFERENCE or out of order, ValueError for a missing step, another shape, or features that
        are missing or unknown.

        >>> embedding = v1.TPUEmbedding({"t": v1.TableConfig(4, 2)}, {"f": v1.FeatureConfig("t")}, 2, v1.TRAINING,
        ...                             optimization_parameters=v1.AdagradParameters(0.1))
        >>> embedding.enqueue([{"f": v1.EnqueueData([1, 3])}])
        >>> embedding.send_gradients(embedding.get_activations())
        >>> embedding.step
        1
        """
        self._engine.send_gradients(gradients, step)

    def send_table_gradients(self, gradients: Sequence[Mapping[str, Any]], step: Optional[int] = None) -> None:
        """Does the same by table.

        gradients: a dict for each core with the array of every table, laid out by `layout`. step: as of send_gradients. Raises
        what that raises.

        >>> embedding = v1.TPUEmbedding({"t": v1.TableConfig(4, 2)}, {"f": v1.FeatureConfig("t")}, 2, v1.TRAINING,
        ...                             optimization_parameters=v1.AdagradParameters(0.1))
        >>> embedding.enqueue([{"f": v1.EnqueueData([1, 3])}])
        >>> activations = embedding.get_activations()
        >>> embedding.send_table_gradients([{"t": np.ones(embedding.layout.table_shape("t"))}])
        >>> embedding.step
        1
        """
        self._engine.send_table_gradients(gradients, step)

    def drop_dequeued_batches(self) -> int:
        """Drops the training batches whose activations were taken and which lack their gradients, as an error of the model leaves
        them behind. Gives how many steps. Raises RuntimeError if there are no variables yet.

        >>> embedding = v1.TPUEmbedding({"t": v1.TableConfig(4, 1)}, {"f": v1.FeatureConfig("t")}, 2, v1.TRAINING,
        ...                             optimization_parameters=v1.StochasticGradientDescentParameters(0.5))
        >>> embedding.enqueue([{"f": v1.EnqueueData([1, 3])}])
        >>> activations = embedding.get_activations()
        >>> embedding.drop_dequeued_batches()
        1
        """
        return self._engine.drop_dequeued_batches()

    def ids_of_host(self, table: str, host: int) -> Any:
        """Gives the ids of a table, by its name, that a host, by its number, owns, rising with their place there. Raises KeyError, ValueError.

        >>> embedding = v1.TPUEmbedding({"t": v1.TableConfig(5, 2)}, {"f": v1.FeatureConfig("t")}, 2, v1.INFERENCE,
        ...                             partition_strategy="mod", device_config=v1.DeviceConfig(2, 2))
        >>> embedding.ids_of_host("t", 1).tolist()
        [1, 3]
        """
        return self._engine.ids_of_host(table, host)

    def configuration(self) -> bytes:
        """Gives the serialized TPUEmbeddingConfiguration, as TensorFlow's engine of this API writes it.

        >>> embedding = v1.TPUEmbedding({"t": v1.TableConfig(5, 2)}, {"f": v1.FeatureConfig("t")}, 2, v1.INFERENCE)
        >>> "vocabulary_size: 5" in embertable.configuration_text(embedding.configuration())
        True
        """
        return self._engine.configuration()

    def read_rows(self, variable: str, ids: Any) -> Any:
        """Gives rows of a variable, 'table' or 'table/slot': an array of shape ids.shape + [dimension], for row-wise slots
        ids.shape. Raises KeyError, IndexError.

        >>> embedding = v1.TPUEmbedding({"t": v1.TableConfig(5, 1, embertable.Initializer.row_id())},
        ...                             {"f": v1.FeatureConfig("t")}, 2, v1.INFERENCE)
        >>> embedding.create_variables()
        >>> embedding.read_rows("t", [4, 0]).tolist()
        [[4.0], [0.0]]
        """
        return self._engine.read_rows(variable, ids)

    def assign_rows(self, variable: str, ids: Any, values: Any) -> None:
        """Overwrites rows of a variable with values, the last of repeated ids winning. Raises what read_rows raises, ValueError for another shape.

        >>> embedding = v1.TPUEmbedding({"t": v1.TableConfig(5, 1)}, {"f": v1.FeatureConfig("t")}, 2, v1.INFERENCE)
        >>> embedding.create_variables()
        >>> embedding.assign_rows("t", [3], [[7.0]])
        >>> embedding.read_rows("t", [3]).tolist()
        [[7.0]]
        """
        self._engine.assign_rows(variable, ids, values)

    def save(self, run: Any, state: Optional[CallerState] = None, id_maps: Optional[Mapping[str, IdMap]] = None) -> Any:
        """Saves as Embedding.save does, and gives the directory of the step: each class restores the other's checkpoints.

        run: a path or a CheckpointRun; state: a CallerState; id_maps: a dict of IdMaps by name. Raises what that raises.

        >>> embedding = v1.TPUEmbedding({"t": v1.TableConfig(5, 1)}, {"f": v1.FeatureConfig("t")}, 2, v1.INFERENCE)
        >>> embedding.create_variables()
        >>> embedding.digest() == embertable.digest_checkpoint(embedding.save(directory + "/run"))
        True
        """
        return self._engine.save(run, state, id_maps)

    def restore(self, path: Any, tables: Optional[Sequence[str]] = None, partial: bool = False) -> RestoreReport:
        """Restores as Embedding.restore does, and gives a RestoreReport.

        path: of a run, whose latest step is taken, or of a step; tables: names of those to restore, None: all; partial: others
        may be absent from the checkpoint. Raises what that raises.

        >>> def made(seed):
        ...     return v1.TPUEmbedding({"t": v1.TableConfig(5, 1)}, {"f": v1.FeatureConfig("t")}, 2, v1.INFERENCE, seed=seed)
        >>> one, other = made(1), made(2)
        >>> one.create_variables()
        >>> report = other.restore(one.save(directory + "/run"))
        >>> report.step, other.digest() == one.digest()
        (0, True)
        """
        return self._engine.restore(path, tables, partial)

    def digest(self) -> str:
        """Gives one hash of all tables and slots, that of an Embedding with the same values.

        >>> embedding = v1.TPUEmbedding({"t": v1.TableConfig(5, 1)}, {"f": v1.FeatureConfig("t")}, 2, v1.INFERENCE)
        >>> embedding.create_variables()
        >>> len(embedding.digest())
        32
        """
        return self._engine.digest()
