"""Random calls of the package: wrong types, shapes and orders, threads, forks, callbacks that raise.

    python random_calls.py CALLS [SEED]

Every call gives a result, or raises an exception of the kinds that the package documents. Ends with an error if a call
raises something else, if nothing happens for two minutes, or if memory grows with the number of calls. A crash ends the
process. Prints the seed, with which the calls of one thread repeat.
"""

import array
import collections
import ctypes
import faulthandler
import functools
import gc
import itertools
import os
import pathlib
import random
import signal
import sys
import tempfile
import threading
import time
import traceback
import warnings

import numpy as np

import embertable as et
from embertable import gradient_interception as gi
from embertable import tpu_embedding as tpu
from embertable import v1


class Boom(Exception):
    """What callbacks raise."""


ALLOWED = (ValueError, TypeError, KeyError, IndexError, RuntimeError, NotImplementedError, OSError, OverflowError, AttributeError,
           MemoryError, Boom)
LEFT_OUT = {"train", "evaluate", "predict", "sweep", "neighbors", "main"}  # whole programs
PAIR = collections.namedtuple("PAIR", "a b")
SANITIZED = "asan" in os.environ.get("LD_PRELOAD", "")


class Hostile:
    """An object whose every conversion raises, or gives what it should not."""

    def __init__(self, dice):
        self._kind = dice.randrange(4)

    def _answer(self, *args, **kwargs):
        if self._kind == 0:
            raise Boom("converted")
        return [None, self, -1, "text"][self._kind]

    __array__ = __len__ = __index__ = __iter__ = __float__ = __getitem__ = __call__ = _answer

    @property
    def values(self):
        return self._answer()

    @property
    def row_splits(self):
        return self._answer()


class Calls:
    """One thread's random calls on shared objects."""

    def __init__(self, seed, folder, objects, depth=0):
        self.dice = random.Random(seed)
        self.folder = folder
        self.objects = objects  # name of a kind -> list
        self.depth = depth
        self.done = 0
        self.last = collections.deque(maxlen=12)

    # ---- values ----

    def pick(self, *values):
        return self.dice.choice(values)

    def integer(self):
        return self.pick(0, 1, 2, 3, 5, -1, -7, 2**31, 2**63, -(2**70), True, np.int32(3), np.uint64(2**63))

    def array(self):
        dice, generator = self.dice, np.random.default_rng(self.dice.randrange(1 << 30))
        shape = tuple(dice.choice([0, 1, 2, 3, 4, 7]) for _ in range(dice.randrange(4)))
        dtype = dice.choice(["i4", "i8", "u1", "u8", "f4", "f8", "f2", "b1", "c8", ">i8", "O", "U3", "M8[s]"])
        made = np.zeros(shape, dtype) if dtype in ("O", "U3", "M8[s]") else generator.integers(-2, 12, shape).astype(dtype)
        form = dice.randrange(6)
        if form == 0:
            return np.asfortranarray(made)
        if form == 1 and made.ndim:
            return made[::-1]
        if form == 2:
            made.flags.writeable = False
        if form == 3 and made.ndim:
            return made[::2]
        if form == 4:
            return made.tolist()
        return made

    def ids(self):
        dice = self.dice
        rows = [[dice.randrange(8) for _ in range(dice.randrange(3))] for _ in range(2)]
        kind = dice.randrange(5)
        if kind == 0:
            return np.array([dice.randrange(8) for _ in range(2)])
        if kind == 1:
            return et.RaggedIds.from_rows(rows)
        if kind == 2:
            places = [(r, c) for r, row in enumerate(rows) for c in range(len(row))]
            return et.SparseIds(np.array(places, np.int64).reshape(-1, 2), [i for row in rows for i in row], (2, 3))
        if kind == 3:
            return [dice.randrange(9), dice.randrange(9)]
        return et.RaggedIds(self.array(), self.array())

    def batch(self):
        return {"a": self.ids(), "b": self.ids()}

    def gradients(self, like=None):
        if like is None or self.dice.random() < 0.2:
            return {"a": self.value(), "b": self.pick(None, self.array(), np.ones((2, 2)))}
        return like

    def function(self):
        def fails(*args, **kwargs):
            raise Boom("called")

        def calls_back(*args, **kwargs):
            if self.depth < 2 and self.objects["engine"]:
                inner = Calls(self.dice.randrange(1 << 30), self.folder, self.objects, self.depth + 1)
                inner.some(2)
            return self.pick(0.1, None, np.ones((2, 2)))

        return self.pick(fails, calls_back, lambda *args, **kwargs: 0.1, lambda *args, **kwargs: args and args[0], len, 7)

    def path(self):
        name = self.pick("run", "other", "bundle", "missing", "file")
        path = self.folder / name
        if name == "file" and not path.exists():
            path.write_bytes(b"no checkpoint")
        return self.pick(path, str(path))

    def config(self):
        dice = self.dice
        initializer = self.pick(None, et.Initializer.zeros(), et.Initializer.uniform(-1, 1), et.Initializer.row_id(),
                                et.Initializer.function(lambda r: np.ones((r.rows, r.dim), np.float32)))
        if dice.random() < 0.1:
            initializer = et.Initializer.function(lambda r: self.function()(r) if callable(self.function()) else None)
        first = et.TableConfig(8, 2, initializer, combiner=self.pick("sum", "mean", "sqrtn"), name="t")
        second = self.pick(first, et.TableConfig(dice.choice([8, 20]), 2, name="u"), et.TableConfig(8, 1))
        return {"a": et.FeatureConfig(first), "b": et.FeatureConfig(second, self.pick(0, 0, 0, 2))}

    def optimizer(self):
        def rule(tile):
            if self.dice.random() < 0.05:
                raise Boom("rule")
            tile.row -= 0.1 * tile.gradient

        rules = et.optimizer_rules()
        return self.pick(et.SGD(0.1), et.Adagrad(0.1), et.RowwiseAdagrad(0.1), et.Optimizer("adam", 0.1),
                         et.Optimizer(self.dice.choice(rules), 0.1), et.Optimizer.custom(rule, 0.1, slots={"s": 0.0}),
                         et.slots_only(["m"]), et.SGD(lambda: self.pick(0.1, 0.2)),
                         et.SGD(lambda step: self.function()), None)

    def strategy(self):
        hosts = self.pick(1, 1, 1, 2)
        return et.EngineStrategy(hosts, self.pick(1, 1, 2), self.pick("div", "mod"), threads=self.pick(1, 2), timeout=0.01)

    def tree(self, depth=0):
        if depth > 2 or self.dice.random() < 0.4:
            return self.value()
        items = [self.tree(depth + 1) for _ in range(self.dice.randrange(3))]
        return self.pick(items, tuple(items), {str(i): x for i, x in enumerate(items)}, {i: x for i, x in enumerate(items)},
                         et.PerReplica(items), PAIR(1, items))

    def value(self):
        kind = self.dice.randrange(17)
        if kind == 0:
            return None
        if kind == 1:
            return self.integer()
        if kind == 2:
            return self.pick(0.5, -1.0, float("nan"), float("inf"), np.float32(2), 1 + 2j)
        if kind == 3:
            return self.pick("", "t", "u", "t/accumulators", "a", "sum", "div", "\ud800", "x" * 300, b"t", b"\xff\0")
        if kind == 4:
            return self.array()
        if kind == 5:
            return self.ids()
        if kind == 6:
            return self.batch()
        if kind == 7:
            return self.tree()
        if kind == 8:
            return self.function()
        if kind == 9:
            return self.path()
        if kind == 10:
            return Hostile(self.dice)
        if kind == 11:
            loop = []
            loop.append(loop)
            return self.pick(loop, {"a": loop}, array.array("q", [1, 2]), memoryview(b"abcd"), range(3), slice(1, None), ..., {1, 2})
        if kind == 12:
            return self.pick(et.CallerState({"a": 1}), et.CallerState(None, {"x": np.ones(2)}, {"y": b"z"}), et.IdMap.hashed("string", 4))
        if kind == 13:
            return self.pick(*self.config().values()).table
        if kind == 14:
            return self.optimizer()
        return self.any_object()

    def any_object(self):
        everything = list(itertools.chain.from_iterable(self.objects.values()))
        return self.dice.choice(everything) if everything else None

    def keep(self, kind, value):
        kept = self.objects[kind]
        kept.append(value)
        while len(kept) > 4:
            kept.pop(self.dice.randrange(len(kept)))
        return value

    # ---- calls ----

    def make(self):
        dice = self.dice
        kind = dice.randrange(10)
        if kind < 3:
            self.keep("engine", et.Embedding(
                self.config(), self.optimizer(), self.strategy(), queue_capacity=self.pick(1, 4), variable_batch=self.pick(False, True),
                pipeline_execution_with_tensor_core=self.pick(False, True), out_of_range=self.pick("error", "drop"),
                revision=self.pick("output_shapes", "output_shapes", "batch_size"), gradient_policy=self.pick("allow", "error"),
                log=self.pick(None, lambda text: None, self.function()), seed=dice.randrange(3)))
        elif kind == 3:
            self.keep("engine", et.Embedding(self.config(), self.optimizer()))
        elif kind < 6:
            self.keep("direct", et.DirectEmbedding(self.config(), self.optimizer(), self.strategy()))
        elif kind == 6:
            self.keep("serving", et.ServingEmbedding(self.config()))
        elif kind == 7:
            self.keep("serving", et.ServingEmbedding.open(self.folder / "run", tables=self.pick("map", "load")))
        elif kind == 8:
            self.keep("v1", v1.TPUEmbedding(
                {"t": v1.TableConfig(8, 2, combiner=self.pick("sum", "mean", None))}, {"a": v1.FeatureConfig("t"), "b": v1.FeatureConfig("t", 2)},
                2, self.pick(v1.TRAINING, v1.INFERENCE), optimization_parameters=self.pick(v1.AdagradParameters(0.1), None), threads=1))
        else:
            parts = [et.Variable(np.ones((dice.randrange(4), 2), np.float32)) for _ in range(dice.randrange(1, 4))]
            self.keep("variable", et.ShardedVariable(parts))

    def step(self):
        """A step that would be right, in part."""
        engine = self.dice.choice(self.objects["engine"])
        form = self.dice.randrange(4)
        if form == 0:
            activations, token = engine.look_up(self.batch(), training=self.pick(True, False))
            self.keep("array", activations)
            if token is not None:
                self.keep("token", token)
                engine.apply_gradients(self.gradients(activations), token)
            return
        engine.enqueue(self.batch(), training=self.pick(True, True, False))
        if form > 1:
            activations = self.keep("array", engine.dequeue())
            if form > 2:
                engine.apply_gradients(self.gradients(activations))

    def step_directly(self):
        tables = self.dice.choice(self.objects["direct"])
        activations, lookup = tables.look_up(self.batch())
        self.keep("array", activations)
        self.keep("lookup", lookup)

        def update(table):
            if self.dice.random() < 0.1:
                raise Boom("update")
            table.parameters[table.rows] -= 0.1 * table.gradients

        lookups = self.pick(lookup, [lookup, self.dice.choice(self.objects["lookup"])])
        gradients = self.gradients(activations)
        tables.apply_gradients(lookups, [gradients, None] if isinstance(lookups, list) else gradients,
                               self.pick(None, update, self.function()))

    def step_of_v1(self):
        embedding = self.dice.choice(self.objects["v1"])
        data = [{"a": v1.EnqueueData([1, self.dice.randrange(9)]), "b": v1.EnqueueData([3, 4], [[0, 0], [1, 1]])}]
        embedding.enqueue(data if self.dice.random() < 0.8 else self.value())
        activations = self.keep("array", embedding.get_activations())
        embedding.send_gradients(activations if self.dice.random() < 0.8 else self.value())

    def save_and_restore(self):
        kind = self.pick("engine", "direct", "v1")
        one = self.dice.choice(self.objects[kind])
        if self.dice.random() < 0.5:
            one.save(self.folder / self.pick("run", "other"))
        else:
            one.restore(self.folder / self.pick("run", "other", "missing"), partial=self.pick(True, False))

    def touch(self):
        """Reads, and writes, what a call gave before."""
        def visit(value):
            if isinstance(value, np.ndarray):
                if value.dtype.kind == "f" and value.size:
                    float(value.sum())
                    if value.flags.writeable and self.dice.random() < 0.3:
                        value[...] = 0.5
            elif isinstance(value, dict):
                for item in value.values():
                    visit(item)
            elif isinstance(value, (list, tuple)):
                for item in value:
                    visit(item)

        visit(self.dice.choice(self.objects["array"]))

    def intercept(self):
        embedding = self.dice.choice(self.objects["v1"])
        dummies, _ = gi.create_dummy_table_variables(embedding)
        hooked = gi.hook_dummy_table_variables_to_activations(embedding, {"a": np.ones((2, 2))}, dummies)
        (hooked["a"] * hooked["a"]).sum().backward()
        gi.get_gradients_through_dummy_table_variables(embedding, log=lambda text: None)
        if self.dice.random() < 0.9:
            embedding.gradient_registry.clear()

    def create(self):
        """A variable by functions of the caller's."""
        create = tpu.make_sharded_variable_creator(self.pick(1, 2, 3, ["a", "b"]))
        first = self.pick(self.function(), functools.partial(np.ones, (3, 2), np.float32), et.Initializer.row_id(), self.value(),
                          lambda shape, dtype, shard_info: np.ones(shard_info.shape, dtype))
        maker = self.pick(None, None, self.function(), lambda initial_value, **_: et.Variable(initial_value()))
        self.keep("variable", create(maker, initial_value=first, name="v", shape=self.pick((3, 2), (1, 2), (0, 2), (4,), None)))

    def run_replicas(self):
        """A step of two replicas, on a thread each; one of them may raise, or do only a part."""
        strategy = tpu.TPUStrategy(replicas_per_host=2, threads=1, timeout=0.05)
        with strategy.scope():
            embedding = tpu.TPUEmbedding(self.config(), self.pick(et.SGD(0.1), self.optimizer()))
        ends = [self.pick(0, 1, 2, 2, 2, 2) for _ in range(2)]

        def step():
            end = ends[tpu.get_replica_context().local_replica]
            if end == 0:
                raise Boom("replica")
            activations = embedding.dequeue()
            if end == 2:
                embedding.apply_gradients(activations)
            return activations

        embedding.enqueue(self.batch())
        self.keep("array", strategy.run(step))

    def anything(self):
        """A public function or method with any arguments."""
        if self.dice.random() < 0.25:
            module = self.pick(et, et, et, tpu)
            names = [n for n in module.__all__ if callable(getattr(module, n)) and n not in LEFT_OUT]
            name = self.dice.choice(names)
            function = getattr(module, name)
            if isinstance(function, type) and issubclass(function, BaseException):
                return
            if name in ("EngineStrategy", "TPUStrategy", "TableConfig", "VariableCreator"):  # no machine has that many threads and rows
                return
        else:
            owner = self.any_object()
            if owner is None or isinstance(owner, (np.ndarray, dict, list, tuple)):
                return
            name = self.dice.choice([n for n in dir(owner) if not n.startswith("_") or n in ("__call__", "__getitem__", "__reduce__")])
            function = getattr(owner, name)
            if not callable(function):
                return
        arguments = [self.value() for _ in range(self.dice.randrange(5))]
        named = {self.pick("name", "weights", "training", "tables", "partial", "timeout", "axis", "state"): self.value()} \
            if self.dice.random() < 0.2 else {}
        self.last.append(f"{name}({', '.join(type(a).__name__ for a in arguments)})")
        result = function(*arguments, **named)
        if isinstance(result, (np.ndarray, dict, list, tuple)):
            self.keep("array", result)
        elif type(result).__module__.startswith("embertable"):
            self.keep("other", result)

    def drop(self):
        kind = self.dice.choice(list(self.objects))
        if self.objects[kind] and (kind != "engine" or len(self.objects[kind]) > 1):
            self.objects[kind].pop(self.dice.randrange(len(self.objects[kind])))

    def one(self):
        calls = [(self.make, 2), (self.step, 6), (self.step_directly, 4), (self.step_of_v1, 2), (self.save_and_restore, 1), (self.touch, 3),
                 (self.intercept, 1), (self.create, 1), (self.run_replicas, 1), (self.anything, 12), (self.drop, 1)]
        call = self.dice.choices([c for c, _ in calls], [w for _, w in calls])[0]
        self.last.append(call.__name__)
        self.done += 1
        try:
            call()
        except ALLOWED as error:
            if isinstance(error, AttributeError) and "nanobind" in str(error):
                raise
        except RecursionError:
            pass

    def some(self, count):
        for _ in range(count):
            self.one()


def in_threads(program, dice):
    """The same objects, called by several threads."""
    failures = []

    def run(seed):
        calls = Calls(seed, program.folder, program.objects)
        try:
            calls.some(20)
        except BaseException:
            failures.append(traceback.format_exc() + "\n".join(calls.last))

    threads = [threading.Thread(target=run, args=(dice.randrange(1 << 30),)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise SystemExit("\n".join(failures))


def in_a_fork(program, dice):
    """Engines of the parent refuse; nothing crashes or hangs."""
    seed = dice.randrange(1 << 30)
    faulthandler.cancel_dump_traceback_later()  # the child has no thread that watches, and would wait for it
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    faulthandler.dump_traceback_later(60 if child == 0 else 120, exit=True)
    if child == 0:
        status = 1
        try:
            calls = Calls(seed, program.folder, {**program.objects, "v1": [], "direct": [], "serving": []})
            for _ in range(5):
                for engine in program.objects["engine"]:
                    try:
                        engine.enqueue(calls.batch())
                    except ALLOWED:
                        pass
                for serving in program.objects["serving"]:
                    try:
                        serving(calls.batch())
                    except ALLOWED:
                        pass
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    end = time.monotonic() + 90
    while not (ended := os.waitpid(child, os.WNOHANG))[0]:
        if time.monotonic() > end:
            os.kill(child, signal.SIGKILL)  # it would hold the output open, and whoever reads that would wait for ever
        time.sleep(0.01)
    status = ended[1]
    if status != 0:
        raise SystemExit(f"a forked process ended with status {status}, seed {seed}")


def resident_bytes():
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def main(calls, seed):
    print(f"seed {seed}", flush=True)
    faulthandler.enable()
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    dice = random.Random(seed)
    kinds = ("engine", "direct", "serving", "v1", "variable", "array", "token", "lookup", "other")
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        program = Calls(dice.randrange(1 << 30), pathlib.Path(folder), {kind: [] for kind in kinds})
        done, sizes, next_look = 0, [], calls / 4
        while done < calls:
            faulthandler.dump_traceback_later(120, exit=True)
            before = program.done
            try:
                program.some(25)
            except BaseException:
                traceback.print_exc()
                raise SystemExit(f"seed {seed}, after {done + program.done - before} calls; the last: " + ", ".join(program.last))
            done += 25
            if dice.random() < 0.1:
                in_threads(program, dice)
                done += 60
            # The sanitizer's allocator of clang 14 stays locked in a child if another thread is in it during the fork.
            if not SANITIZED and dice.random() < 0.05:
                in_a_fork(program, dice)
            if done >= next_look:
                for kept in program.objects.values():
                    kept.clear()
                sizes.append(resident_bytes())
                next_look += calls / 4
        faulthandler.cancel_dump_traceback_later()
        os.chdir("/")
    print(f"{done} calls; resident MiB at each quarter: " + ", ".join(f"{size / 2**20:.1f}" for size in sizes))
    growth = sizes[-1] - sizes[0]
    if growth > max(16 << 20, 200 * calls) and not SANITIZED:
        raise SystemExit(f"memory grew by {growth / 2**20:.1f} MiB in the last three quarters")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(1 << 30))
