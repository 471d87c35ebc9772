"""The embedding and its serving form, with the original's arguments."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

from .. import (DirectEmbedding, Embedding, EngineStrategy, LookupToken, Optimizer, Replica, RestoreReport,
                ServingEmbedding, TableConfig, configuration_text)
from .._trees import leaves_of
from .config import check_tables, row_sources
from .strategy import ReplicaContext, TPUStrategy, get_replica_context, get_strategy

_log = logging.getLogger("embertable")
_DEPRECATED = "is deprecated in the original; give input shapes instead"

_Outputs = Literal["numpy", "tensorflow", "torch", "jax"]


class TPUEmbedding(Embedding):
    """An Embedding on the strategy in whose scope it is made; outside of any scope it is plain, and only holds tables. As in
    TensorFlow, gradients that are infinite or NaN change rows like others.

    feature_config: a tree of FeatureConfigs; optimizer: of all tables that have none of their own, None if the object is plain;
    pipeline_execution_with_tensor_core: looks a batch up before the update of the one before; outputs: the kind of arrays that
    results are, "numpy", "tensorflow", "torch" or "jax". Raises ValueError for what is no optimizer and for two tables of one
    name, TypeError for leaves that are no FeatureConfig.

    >>> with tpu.TPUStrategy(threads=1).scope():
    ...     embedding = tpu.TPUEmbedding({"film": tpu.FeatureConfig(tpu.TableConfig(8, 4, name="films"))}, tpu.SGD(0.1))
    >>> embedding.enqueue({"film": np.array([1, 2])})
    >>> activations = embedding.dequeue()
    >>> activations["film"].shape
    (2, 4)
    >>> embedding.apply_gradients(activations)
    """

    def __init__(self, feature_config: Any, optimizer: Optimizer | None,
                 pipeline_execution_with_tensor_core: bool = False, *, outputs: _Outputs = "numpy") -> None:
        features = leaves_of(feature_config)
        check_tables(features)
        strategy = get_strategy()
        super().__init__(feature_config, optimizer, strategy,
                         pipeline_execution_with_tensor_core=pipeline_execution_with_tensor_core,
                         gradient_policy="allow", outputs=outputs)
        self._row_sources = row_sources(features)
        self._replicas: dict[int, Replica] = {}

    def build(self, per_replica_input_shapes: Any = None, per_replica_batch_size: int | None = None) -> None:
        """Creates the tables. Input shapes, a tree, or list in flatten order, of tuples with None for an unknown dim, win over
        a batch size. A built object returns at once. Raises ValueError for shapes that contradict the configuration or leave
        an output shape unknown, RuntimeError if another embedding is built on the strategy.

        >>> embedding = tpu.TPUEmbedding(tpu.FeatureConfig(tpu.TableConfig(8, 4)), tpu.SGD(0.1))
        >>> embedding.build()
        >>> embedding.built
        True
        """
        if not self.built and self.accelerated:
            if isinstance(per_replica_input_shapes, int):
                _log.warning("build: a batch size as per_replica_input_shapes %s", _DEPRECATED)
            if per_replica_batch_size is not None:
                _log.warning("build: per_replica_batch_size %s", _DEPRECATED)
        with self._building():
            super().build(per_replica_input_shapes, per_replica_batch_size)

    def enqueue(self, features: Any, weights: Any = None, training: Any = True, name: str | None = None,
                device: str | None = None, *, mode_override: str | None = None, timeout: float = 0) -> None:
        """Checks and copies a batch, ids in the containers of feature_config, for every replica: a PerReplica at any place has
        a value for each, and everything else is for all. Inside of `TPUStrategy.run` it is for the replica alone.

        weights: None, or the same containers, with None at leaves; training: gradients will follow; device: a core's name, as
        in "/job:worker/replica:0/task:1/device:TPU:0" or "TPU:1", whose batch this is alone, which `run` does not take; name:
        labels the batch in messages; mode_override: "train", "training" or "unspecified", or "inference", instead of training;
        timeout: seconds to wait for another thread to make room in a full queue. The first call builds. Raises
        RuntimeError if the object is plain or the queue is full; ValueError, TypeError or embertable.DataError naming feature,
        position, value and rule.

        >>> with tpu.TPUStrategy(replicas_per_host=2, threads=1).scope() as strategy:
        ...     embedding = tpu.TPUEmbedding(tpu.FeatureConfig(tpu.TableConfig(8, 4)), tpu.SGD(0.1))
        >>> for core, ids in enumerate([[1, 2], [3, 4]]):
        ...     embedding.enqueue(np.array(ids), device=strategy.extended.worker_devices[core])
        >>> [a.shape for a in embedding.dequeue()]
        [(2, 4), (2, 4)]
        """
        own = self._own_replica()
        if (context := self._context()) is not None:
            self._note_depth(context)
            context._fed.add(self)
        with self._building():
            if own is None:
                super().enqueue(features, weights, training, name, device, mode_override=mode_override, timeout=timeout)
            elif device is not None:
                raise ValueError("device must be None inside of a function that runs for one replica")
            else:
                own.enqueue(features, weights, training, name, mode_override=mode_override, timeout=timeout)

    def dequeue(self, out: Any = None, name: str | None = None, *, timeout: float = 0) -> Any:
        """Looks up the oldest batch: arrays of shape S + [dim] in the containers of feature_config, for several replicas a
        PerReplica of them, inside of `TPUStrategy.run` those of the replica. out: arrays of the same form to write to instead,
        outside of a `run` for several replicas; a text is the name of the operation, which has no effect. timeout: seconds to
        wait for another thread's batch. Raises RuntimeError if the object is plain, nothing is enqueued, or the batch before
        lacks its gradients.

        >>> with tpu.TPUStrategy(threads=1).scope():
        ...     embedding = tpu.TPUEmbedding(tpu.FeatureConfig(tpu.TableConfig(8, 4)), tpu.SGD(0.1))
        >>> embedding.enqueue(np.array([1, 2]), training=False)
        >>> embedding.dequeue().shape
        (2, 4)
        """
        if isinstance(out, str):
            out = None
        own = self._own_replica()
        if own is not None and out is not None:
            raise ValueError("out must be None inside of a function that runs for one replica")
        if (context := self._context()) is not None:
            self._note_depth(context)
            if not self.awaiting_gradients:
                context._dequeued.add(self)
        return super().dequeue(out, timeout=timeout) if own is None else own.dequeue(timeout=timeout)

    def apply_gradients(self, gradients: Any, name: Any = None, *, token: LookupToken | None = None) -> None:  # type: ignore[override]
        """Applies one gradient for each activation (None: zeros) of the oldest dequeued training batch, in the same
        containers. `name` has no effect. token: of `look_up`, whose batch it is instead, outside of a `run` for several
        replicas. Raises RuntimeError if no batch awaits its gradients, ValueError or TypeError naming feature and rule.

        >>> with tpu.TPUStrategy(threads=1).scope():
        ...     embedding = tpu.TPUEmbedding(tpu.FeatureConfig(tpu.TableConfig(8, 4)), tpu.SGD(0.1))
        >>> embedding.enqueue(np.array([1, 2]))
        >>> embedding.apply_gradients(np.ones_like(embedding.dequeue()))
        >>> embedding.step
        1
        """
        own = self._own_replica()
        if own is None:
            super().apply_gradients(gradients, token)
        elif token is not None:
            raise ValueError("token must be None inside of a function that runs for one replica")
        else:
            own.apply_gradients(gradients)

    @property
    def embedding_tables(self) -> Any:
        """A dict of arrays [vocabulary_size, dim] by TableConfig, over the tables' own memory. Builds. Raises RuntimeError if
        the object was made in the scope of a strategy.
        """
        with self._building():
            return super().embedding_tables()

    def restore(self, path: Any, tables: Any = None, partial: bool = False, grow: Any = None, *,
                step: int | None = None) -> RestoreReport:
        """Takes tables and slots from a step's directory, or a run's latest step: see embertable.Embedding.restore."""
        try:
            return super().restore(path, tables, partial, grow, step=step)
        finally:
            self._release()

    def _context(self) -> ReplicaContext | None:
        """The context of the function that this thread runs for a replica of this object's strategy, if it runs one."""
        context = get_replica_context()
        return context if context is not None and context.strategy is self.strategy else None

    def _note_depth(self, context: ReplicaContext) -> None:
        """Notes, at the function's first call, how many steps are queued: without this replica no other one is."""
        if self not in context._depth:
            context._depth[self] = self.queued_batches

    def _own_replica(self) -> Replica | None:
        """The replica that this thread runs a function for, if it is one of several of this object's strategy."""
        context = self._context()
        if context is None or context.strategy.replicas == 1:
            return None
        replica = context.local_replica
        if replica not in self._replicas:
            self._replicas[replica] = self.replica(replica)
        return self._replicas[replica]

    @contextmanager
    def _building(self) -> Iterator[None]:
        """Surrounds a call that may build."""
        if self.built:
            yield
            return
        if self.accelerated:
            _log.info("Initializing TPU Embedding engine.")
        try:
            yield
        finally:
            self._release()
        if self.built and self.accelerated:
            self._log_configuration()
            _log.info("Done initializing TPU Embedding engine.")

    def _log_configuration(self) -> None:
        if not _log.isEnabledFor(logging.DEBUG):
            return
        try:
            lines = configuration_text(self.configuration()).splitlines()
        except (NotImplementedError, ValueError) as error:  # a rule that the message has no place for
            lines = [f"no configuration: {error}"]
        for line in lines:
            _log.debug("%s", line)

    def _release(self) -> None:
        for source in self._row_sources:
            source.release()


class TPUEmbeddingForServing(ServingEmbedding):
    """A ServingEmbedding: tables that are only looked up. Raises RuntimeError in the scope of a strategy.

    >>> serving = tpu.TPUEmbeddingForServing({"film": tpu.FeatureConfig(tpu.TableConfig(8, 4))})
    >>> serving({"film": np.array([1, 2])})["film"].shape
    (2, 4)
    """

    def __init__(self, feature_config: Any, optimizer: Optimizer | None = None, *, outputs: _Outputs = "numpy") -> None:
        check_tables(leaves_of(feature_config))
        super().__init__(feature_config, optimizer, get_strategy(), outputs=outputs)

    @property
    def embedding_tables(self) -> Any:
        """A dict of read-only arrays [vocabulary_size, dim] by TableConfig."""
        return super().embedding_tables()


class TPUEmbeddingV0(DirectEmbedding):
    """A DirectEmbedding on the strategy in whose scope it is made: tables that are looked up and trained without queues.

    feature_config: a tree of FeatureConfigs; optimizer: of all tables that have none of their own, None where an update of the
    caller's steps them; outputs: the kind of arrays that activations are, "numpy", "tensorflow", "torch" or "jax". Raises
    RuntimeError outside of any scope, ValueError for what is no optimizer and for two tables of one name.

    >>> with tpu.TPUStrategy(threads=1).scope():
    ...     embedding = tpu.TPUEmbeddingV0({"film": tpu.FeatureConfig(tpu.TableConfig(8, 4))}, tpu.SGD(0.1))
    >>> activations, lookup = embedding.look_up({"film": np.array([1, 2])})
    >>> embedding.apply_gradients(lookup, activations)
    >>> embedding.step
    1
    """

    def __init__(self, feature_config: Any, optimizer: Optimizer | None = None, *, outputs: _Outputs = "numpy") -> None:
        check_tables(leaves_of(feature_config))
        strategy = get_strategy()
        if strategy is None:
            raise RuntimeError("TPUEmbeddingV0 must be made in the scope of a strategy, which says how many replicas look up "
                               "and step")
        super().__init__(feature_config, optimizer, strategy, outputs=outputs)

    @property
    def embedding_tables(self) -> Any:
        """A dict of arrays [vocabulary_size, dim] by TableConfig, over the tables' own memory. Builds."""
        return super().embedding_tables()


def initialize_tpu_system(strategy: EngineStrategy | None = None) -> EngineStrategy:
    """Drops the tables of a strategy, None: that of the scope, so that another embedding may be built on it. Returns the
    strategy. Raises ValueError outside of any scope.

    >>> tpu.initialize_tpu_system(tpu.TPUStrategy(threads=1)).hosts
    1
    """
    chosen = get_strategy() if strategy is None else strategy
    if not isinstance(chosen, EngineStrategy):
        raise ValueError(f"initialize_tpu_system needs a strategy, or the scope of one, got {type(strategy).__name__}")
    chosen.initialize()
    return chosen


