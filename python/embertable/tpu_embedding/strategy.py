"""Strategies: on which devices an embedding is, and what runs once for each replica."""

import contextlib
import contextvars
import ctypes
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from .. import EngineStrategy, PerReplica
from .trees import cut, mapped, merged, part_of


_PATIENCE_S = 10.0  # for replicas to end after an interruption


class ReplicaContext:
    """Says to a function that `TPUStrategy.run` calls which replica it is.

    replica_id_in_sync_group: number of the replica among those of all hosts; num_replicas_in_sync: how many there are;
    strategy: what runs the function; local_replica: the replica's number among those of this process.
    """

    def __init__(self, strategy: "TPUStrategy", local_replica: int) -> None:
        self.strategy = strategy
        self.local_replica = local_replica
        self._fed: set[Any] = set()  # the embeddings that the function has enqueued batches of
        self._depth: dict[Any, int] = {}  # by embedding: steps that were queued when the function first used it
        self._dequeued: set[Any] = set()  # those that it dequeues from while no batch awaits its gradients

    @property
    def replica_id_in_sync_group(self) -> int:
        return self.strategy.first_replica + self.local_replica

    @property
    def num_replicas_in_sync(self) -> int:
        return self.strategy.replicas

    def __repr__(self) -> str:
        return f"ReplicaContext(replica {self.replica_id_in_sync_group} of {self.num_replicas_in_sync})"


def _fed_by(contexts: Sequence[ReplicaContext]) -> set[Any]:
    return set().union(*(context._fed for context in contexts))


def _drop(contexts: Sequence[ReplicaContext]) -> None:
    """Drops what replicas, all of which have ended, have enqueued in this run and not dequeued, so that the queues are as
    deep as before, and what they have dequeued and given no gradients. Not where a thread that feeds an embedding besides
    enqueues."""
    for embedding in _fed_by(contexts):
        before = min(context._depth[embedding] for context in contexts if embedding in context._depth)
        try:
            embedding.drop_queued_batches(max(0, embedding.queued_batches - before))
        except RuntimeError:  # such as that of an engine that has failed
            with contextlib.suppress(RuntimeError):
                embedding.drop_unmatched_batches()
    for embedding in set().union(*(context._dequeued for context in contexts)):
        with contextlib.suppress(RuntimeError):
            embedding.drop_dequeued_batches()


def _drop_unmatched(contexts: Sequence[ReplicaContext]) -> None:
    """Drops what replicas have enqueued for steps that one which has not ended has no batch of, unless it enqueues now."""
    for embedding in _fed_by(contexts):
        with contextlib.suppress(RuntimeError):
            embedding.drop_unmatched_batches()


class _OfThread(threading.local):
    """What a thread is inside of."""

    def __init__(self) -> None:
        self.strategies: list[TPUStrategy] = []  # of scopes, innermost last
        self.replica: ReplicaContext | None = None


_here = _OfThread()


def get_strategy() -> "TPUStrategy | None":
    """Returns the strategy of the innermost scope of this thread, or None outside of any.

    >>> with tpu.TPUStrategy(threads=1).scope() as strategy:
    ...     tpu.get_strategy() is strategy
    True
    """
    return _here.strategies[-1] if _here.strategies else None


def get_replica_context() -> ReplicaContext | None:
    """Returns the replica whose function this thread runs (see `TPUStrategy.run`), or None.

    >>> strategy = tpu.TPUStrategy(replicas_per_host=2, threads=1)
    >>> strategy.run(lambda: tpu.get_replica_context().replica_id_in_sync_group)
    (0, 1)
    """
    return _here.replica


class InputOptions:
    """Options of a distributed data set. They are for devices that inputs are copied to; here batches stay in the host's
    memory, and the options have no effect.

    >>> tpu.InputOptions(experimental_fetch_to_device=False)
    InputOptions(experimental_fetch_to_device=False)
    """

    def __init__(self, **options: Any) -> None:
        self.options = options

    def __repr__(self) -> str:
        return f"InputOptions({', '.join(f'{name}={value!r}' for name, value in self.options.items())})"


class InputContext:
    """Says to a function that makes a data set for whom it is: `num_input_pipelines` hosts have one each, this is for
    `input_pipeline_id`, and there are `num_replicas_in_sync` replicas in all."""

    def __init__(self, num_input_pipelines: int, input_pipeline_id: int, num_replicas_in_sync: int) -> None:
        self.num_input_pipelines = num_input_pipelines
        self.input_pipeline_id = input_pipeline_id
        self.num_replicas_in_sync = num_replicas_in_sync

    def get_per_replica_batch_size(self, global_batch_size: int) -> int:
        """Returns the batch size of one replica. Raises ValueError unless the replicas divide global_batch_size.

        >>> tpu.InputContext(1, 0, 4).get_per_replica_batch_size(8)
        2
        """
        size, rest = divmod(global_batch_size, self.num_replicas_in_sync)
        if rest:
            raise ValueError(f"the global batch size must be divisible by {self.num_replicas_in_sync} replicas, got "
                             f"{global_batch_size}")
        return size


class DistributedValues:
    """What an iterable of elements gives, each step anew: trees with a PerReplica in the place of each leaf."""

    def __init__(self, elements: Callable[[], Iterator[Any]]) -> None:
        self._elements = elements

    def __iter__(self) -> Iterator[Any]:
        return self._elements()


class Extended:
    """Devices of a strategy."""

    def __init__(self, strategy: "TPUStrategy") -> None:
        self._strategy = strategy

    @property
    def worker_devices(self) -> tuple[str, ...]:
        """The device of each replica, in their order: what `TPUEmbedding.enqueue(device=...)` takes."""
        return tuple(self._strategy.devices[::self._strategy.cores_per_replica])

    @property
    def num_hosts(self) -> int:
        return self._strategy.hosts

    @property
    def num_replicas_per_host(self) -> int:
        return self._strategy.replicas_per_host


class TPUStrategy(EngineStrategy):
    """An EngineStrategy for all embeddings that are made in its scope. Takes what EngineStrategy takes.

    >>> strategy = tpu.TPUStrategy(hosts=2, replicas_per_host=2, threads=1)
    >>> strategy.num_replicas_in_sync, strategy.extended.num_hosts
    (4, 2)
    >>> strategy.extended.worker_devices[3]
    '/job:worker/replica:0/task:1/device:TPU:1'
    """

    @property
    def num_replicas_in_sync(self) -> int:
        """Number of replicas of all hosts."""
        return self.replicas

    @property
    def extended(self) -> Extended:
        """Devices and hosts, as TensorFlow's strategies show them."""
        return Extended(self)

    @contextlib.contextmanager
    def scope(self) -> Iterator["TPUStrategy"]:
        """Makes the embeddings that this thread makes inside of the `with` accelerated, on this strategy. Scopes of other
        threads do not matter.

        >>> with tpu.TPUStrategy(threads=1).scope():
        ...     embedding = tpu.TPUEmbedding(tpu.FeatureConfig(tpu.TableConfig(8, 4)), tpu.SGD(0.1))
        >>> embedding.accelerated
        True
        """
        strategies = _here.strategies  # a generator that Ctrl-C has cut off may be ended by another thread
        strategies.append(self)
        try:
            yield self
        finally:
            strategies.pop()

    def run(self, fn: Callable[..., Any], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None,
            options: Any = None) -> Any:
        """Calls fn(*args, **kwargs) once for each replica of this process, on a thread each; one replica is called as it
        is. A PerReplica, anywhere in the arguments, gives each replica its own part. Inside of fn, a TPUEmbedding's
        `enqueue`, `dequeue` and `apply_gradients` are those of the replica alone.

        Returns what fn returns: for several replicas a tree with a PerReplica in the place of each leaf. If fn raises, the
        error that came first is raised once all replicas have ended; one that waits for the replica that failed ends after
        the strategy's timeout. Batches that fn has enqueued and not dequeued are dropped, and, where no batch awaited its
        gradients before, those that it has dequeued and given none. A process whose functions fail alone is a batch apart from
        the others, which a call of `abandon_step` tells; nothing else may. Ctrl-C is raised in all replicas, which end at their
        next line of Python; after ten seconds `run` does not wait for them any longer. Raises RuntimeError inside of another run.

        >>> strategy = tpu.TPUStrategy(replicas_per_host=2, threads=1)
        >>> strategy.run(lambda x, y: x + y, args=(embertable.PerReplica([1, 2]), 10))
        (11, 12)
        """
        if _here.replica is not None:
            raise RuntimeError("run must not be called by a function that runs for one replica")
        if not isinstance(args, Iterable) or isinstance(args, (str, bytes)):
            raise TypeError(f"run: args must be a list or tuple of arguments, got {args!r}")
        if kwargs is not None and not isinstance(kwargs, Mapping):
            raise TypeError(f"run: kwargs must be a dict of arguments by name, got {kwargs!r}")
        replicas = self.local_replicas
        calls = [part_of((tuple(args), dict(kwargs or {})), r, replicas) for r in range(replicas)]
        if replicas == 1:
            context = ReplicaContext(self, 0)
            try:
                return self._call(fn, calls[0], context)
            except BaseException:
                _drop([context])
                raise
        return merged(self._on_threads(fn, calls))

    def _call(self, fn: Callable[..., Any], arguments: tuple[tuple[Any, ...], dict[str, Any]],
              context: ReplicaContext) -> Any:
        _here.replica = context
        try:
            with self.scope():
                return fn(*arguments[0], **arguments[1])
        finally:
            _here.replica = None

    def _on_threads(self, fn: Callable[..., Any], calls: Sequence[Any]) -> list[Any]:
        contexts = [ReplicaContext(self, r) for r in range(len(calls))]
        results: list[Any] = [None] * len(calls)
        errors: list[tuple[int, BaseException]] = []  # in the order of time
        ends = [threading.Event() for _ in calls]  # a join that was interrupted takes its thread for one that ended

        runs = [False] * len(calls)  # the replica's thread is inside of `work`, where an error may be raised in it
        stopped = threading.Event()  # a thread that begins now does not call

        def work(replica: int) -> None:
            try:
                runs[replica] = True
                if not stopped.is_set():
                    results[replica] = self._call(fn, calls[replica], contexts[replica])
            except BaseException as error:  # noqa: BLE001: it is raised by the thread that called `run`
                errors.append((replica, error))
            finally:
                ends[replica].set()

        threads = [threading.Thread(target=contextvars.copy_context().run, args=(work, r), daemon=True,
                                    name=f"replica {self.first_replica + r}") for r in range(len(calls))]
        begun = 0  # a thread may run though its `start` was interrupted
        try:
            for thread in threads:
                begun += 1
                thread.start()
            for end in ends:
                end.wait()
        except BaseException as error:  # such as that of Ctrl-C: nobody would be left to end the replicas
            stopped.set()
            for end in ends[begun:]:
                end.set()
            _end([(thread, end) for thread, end, run in zip(threads, ends, runs) if run], type(error))
            latest = time.monotonic() + _PATIENCE_S
            for end in ends:
                end.wait(max(0.0, latest - time.monotonic()))
            (_drop if all(end.is_set() for end in ends) else _drop_unmatched)(contexts)
            raise
        for thread in threads:
            thread.join()
        if errors:
            _drop(contexts)
            raise errors[0][1]
        return results

    def experimental_local_results(self, value: Any) -> tuple[Any, ...]:
        """Returns a tuple of the values of this process's replicas: of a PerReplica, of a tree that has some (then a
        tree for each replica), or of a value that is no PerReplica, which it has alone.

        >>> strategy = tpu.TPUStrategy(replicas_per_host=2, threads=1)
        >>> strategy.experimental_local_results({"a": embertable.PerReplica([1, 2]), "b": 3})
        ({'a': 1, 'b': 3}, {'a': 2, 'b': 3})
        """
        if isinstance(value, PerReplica):
            return tuple(value)
        if not any(isinstance(leaf, PerReplica) for leaf in _outer_leaves(value)):
            return (value,)
        return tuple(part_of(value, r, self.local_replicas) for r in range(self.local_replicas))

    def distribute_datasets_from_function(self, dataset_fn: Callable[[InputContext], Iterable[Any]],
                                          options: InputOptions | None = None) -> DistributedValues:
        """Returns an iterable over dataset_fn(InputContext), whose elements are batches of one replica: each step takes as
        many as this process has replicas. The data set is made anew for each iteration; elements that are too few for a
        whole step are left out.

        >>> strategy = tpu.TPUStrategy(replicas_per_host=2, threads=1)
        >>> list(strategy.distribute_datasets_from_function(lambda context: [[1], [2], [3], [4], [5]]))
        [[(1, 2)], [(3, 4)]]
        """
        hosts = self.hosts if self.local_replicas < self.replicas else 1
        context = InputContext(hosts, self.host if hosts > 1 else 0, self.replicas)

        def elements() -> Iterator[Any]:
            batches = iter(dataset_fn(context))
            while True:
                step = [batch for _, batch in zip(range(self.local_replicas), batches)]
                if len(step) < self.local_replicas:
                    return
                yield merged(step)

        return DistributedValues(elements)

    def experimental_distribute_dataset(self, dataset: Iterable[Any],
                                        options: InputOptions | None = None) -> DistributedValues:
        """Returns an iterable over dataset, whose elements are global batches: each is cut on the first axis of its
        leaves, in equal parts, one for each replica. Raises ValueError, at that step, for samples that the replicas do not
        divide, and for a leaf without an axis.

        >>> strategy = tpu.TPUStrategy(replicas_per_host=2, threads=1)
        >>> for element in strategy.experimental_distribute_dataset([{"x": np.array([1, 2, 3, 4])}]):
        ...     print(element)
        {'x': (array([1, 2]), array([3, 4]))}
        """

        def elements() -> Iterator[Any]:
            for batch in dataset:
                yield merged([cut(batch, self.first_replica + r, self.replicas) for r in range(self.local_replicas)])

        return DistributedValues(elements)

    def experimental_distribute_values_from_function(self, value_fn: Callable[[ReplicaContext], Any]) -> Any:
        """Returns what value_fn(ReplicaContext) gives for each replica, as `run` returns it.

        >>> strategy = tpu.TPUStrategy(replicas_per_host=2, threads=1)
        >>> strategy.experimental_distribute_values_from_function(lambda context: context.replica_id_in_sync_group)
        (0, 1)
        """
        return merged([value_fn(ReplicaContext(self, r)) for r in range(self.local_replicas)])

    def reduce(self, reduce_op: Any, value: Any, axis: int | None = None) -> Any:
        """Returns the sum or mean of the values of this process's replicas, in their order, and along `axis` of each unless it
        is None. reduce_op: "sum" or "mean", or TensorFlow's ReduceOp, else ValueError; value: a tree that has PerReplicas.

        >>> tpu.TPUStrategy(replicas_per_host=2, threads=1).reduce("mean", embertable.PerReplica([1.0, 3.0]))
        2.0
        """
        name = str(getattr(reduce_op, "value", reduce_op)).lower()
        if name not in ("sum", "mean"):
            raise ValueError(f"reduce_op must be 'sum' or 'mean', got {reduce_op!r}")

        def reduced(leaf: Any) -> Any:
            parts = [np.asarray(part) for part in (leaf if isinstance(leaf, PerReplica) else (leaf,))]
            if axis is not None:
                count = sum(part.shape[axis] for part in parts)
                parts = [part.sum(axis) for part in parts]
            else:
                count = len(parts)
            total = parts[0]
            for part in parts[1:]:
                total = total + part
            result = total / count if name == "mean" else total
            return result.item() if result.ndim == 0 else result

        return mapped(reduced, value)


def _end(threads: Sequence[tuple[threading.Thread, threading.Event]], error: type[BaseException]) -> None:
    """Raises an error in threads that run; one that waits in C++ sees it after that."""
    for thread, end in threads:
        if not end.is_set():
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident or 0), ctypes.py_object(error))


def _outer_leaves(tree: Any) -> list[Any]:
    found: list[Any] = []
    mapped(found.append, tree)
    return found


def get_list_of_hosts(strategy: EngineStrategy) -> list[str]:
    """Returns the name of the CPU of each host, in the order of the strategy's devices.

    >>> tpu.get_list_of_hosts(tpu.TPUStrategy(hosts=2, threads=1))[1]
    '/job:worker/replica:0/task:1/device:CPU:0'
    """
    return strategy.list_of_hosts
