"""Checkpoints of an embedding and of what is trained beside it, in one commit."""

import importlib
import os
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .. import (CallerState, Embedding, IdMap, RestoreReport, ServingEmbedding, ShardedVariable, Variable, find_checkpoint,
                read_saved_state, save_variables)

_MOST_LEVELS = 64
_PLAIN = (bool, int, float, str, type(None))


class _Place:
    """A value that a checkpoint keeps: how it is read, and how a saved one takes its place."""

    def __init__(self, path: str, read: Callable[[], Any], write: Callable[[Any], None]) -> None:
        self.path = path
        self.read = read
        self.write = write

    def is_plain(self) -> bool:
        return isinstance(self.read(), _PLAIN)


def _is_torch(value: Any) -> bool:
    return type(value).__module__.split(".")[0] == "torch"


def _array_of(value: Any) -> np.ndarray:
    if _is_torch(value):
        value = value.detach().cpu()
        return np.asarray(value.float() if "bfloat16" in str(value.dtype) else value)
    return np.asarray(value)


def _is_array(value: Any) -> bool:
    return isinstance(value, (np.ndarray, np.generic)) or (hasattr(value, "__array__") and hasattr(value, "dtype"))


def _into_array(array: np.ndarray) -> Callable[[Any], None]:
    def write(saved: Any) -> None:
        array[...] = saved

    return write


def _assigning(variable: Any) -> Callable[[Any], None]:
    def write(saved: Any) -> None:
        variable.assign(saved)

    return write


def _like(old: Any, saved: Any) -> Any:
    """A saved array as the kind of array that the old one is, which cannot be changed in place."""
    if type(old).__module__.split(".")[0] in ("jax", "jaxlib"):
        return importlib.import_module("jax.numpy").asarray(saved)
    if type(old).__module__.split(".")[0] == "tensorflow":
        return importlib.import_module("tensorflow").convert_to_tensor(saved)
    return saved


def _places(path: str, value: Any, replace: Callable[[Any], None], seen: set[int], level: int = 0) -> Iterator[_Place]:
    """Yields the places of an object and of what it contains. `replace` puts another object in its place."""
    if level > _MOST_LEVELS:
        raise ValueError(f"'{path}': objects must be at most {_MOST_LEVELS} within each other")
    if isinstance(value, (Variable, ShardedVariable)):
        yield _Place(path, lambda: value, _assigning(value))
        return
    if isinstance(value, _PLAIN):
        yield _Place(path, lambda: value, replace)
        return
    if isinstance(value, np.ndarray) and value.flags.writeable:
        yield _Place(path, lambda: value, _into_array(value))
        return
    if hasattr(value, "assign") and hasattr(value, "dtype"):  # tf.Variable
        yield _Place(path, lambda: value.numpy(), _assigning(value))
        return
    if _is_torch(value) and hasattr(value, "copy_"):
        yield _Place(path, lambda: _array_of(value), lambda saved: value.data.copy_(_torch_tensor(saved)))
        return
    if _is_array(value):
        yield _Place(path, lambda: _array_of(value), lambda saved: replace(_like(value, saved)))
        return
    if id(value) in seen:
        return  # it has a place already
    seen.add(id(value))
    if hasattr(value, "state_dict") and hasattr(value, "load_state_dict"):
        yield from _places_of_state(path, value)
    elif hasattr(value, "get_weights") and hasattr(value, "set_weights"):
        yield from _places_of_weights(path, value)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _places(f"{path}/{key}", item, _setter(value, key), seen, level + 1)
    elif isinstance(value, (list, tuple)):
        for i, item in enumerate(value):
            yield from _places(f"{path}/{i}", item, _setter(value, i), seen, level + 1)
    elif hasattr(value, "__dict__"):
        for name, item in sorted(vars(value).items()):
            if not isinstance(item, _PLAIN) and not callable(item) and not isinstance(item, type):
                yield from _places(f"{path}/{name}", item, lambda saved, name=name: setattr(value, name, saved), seen,  # type: ignore[misc]
                                   level + 1)
    elif level == 0:
        raise TypeError(f"'{path}' must be an embedding, a variable, an array or an object that has some, got "
                        f"{type(value).__name__}")


def _setter(container: Any, key: Any) -> Callable[[Any], None]:
    def write(saved: Any) -> None:
        if isinstance(container, tuple):
            raise TypeError("values in a tuple cannot be replaced; keep them in a list or a dict")
        container[key] = saved

    return write


def _as_tensor_of(dtype: Any) -> Callable[[Any], Any]:
    return lambda saved: _torch_tensor(saved).to(dtype)


def _torch_tensor(saved: Any) -> Any:
    return importlib.import_module("torch").from_numpy(np.array(saved))


def _places_of_state(path: str, module: Any) -> Iterator[_Place]:
    """Of a module or an optimizer of PyTorch: its state dict, which takes effect when the last part of it has come."""
    state = module.state_dict()
    waiting: set[str] = set()

    def arrived(place: str) -> None:
        waiting.discard(place)
        if not waiting:
            module.load_state_dict(state)

    def walk(at: str, container: Any) -> Iterator[_Place]:
        for key, item in container.items() if isinstance(container, dict) else enumerate(container):
            place = f"{at}/{key}"
            if isinstance(item, (dict, list)):
                yield from walk(place, item)
            elif isinstance(item, tuple) and all(isinstance(part, _PLAIN) for part in item):
                yield leaf(place, container, key, list(item), tuple)
            elif isinstance(item, _PLAIN):
                yield leaf(place, container, key, item, lambda saved: saved)
            else:
                yield leaf(place, container, key, _array_of(item), _as_tensor_of(item.dtype))

    def leaf(place: str, container: Any, key: Any, value: Any, convert: Callable[[Any], Any]) -> _Place:
        waiting.add(place)

        def write(saved: Any) -> None:
            container[key] = convert(saved)
            arrived(place)

        return _Place(place, lambda: value, write)

    yield from list(walk(path, state))


def _places_of_weights(path: str, model: Any) -> Iterator[_Place]:
    """Of a model of Keras: its weights, which take effect when the last of them has come."""
    weights = list(model.get_weights())
    waiting = set(range(len(weights)))

    def place(i: int) -> _Place:
        def write(saved: Any) -> None:
            weights[i] = saved
            waiting.discard(i)
            if not waiting:
                model.set_weights(weights)

        return _Place(f"{path}/{i}", lambda: weights[i], write)

    yield from [place(i) for i in range(len(weights))]


class CheckpointStatus:
    """What a restore found, and what it did not.

    step: of the checkpoint; report: the embedding's RestoreReport, or None; missing: places of the objects that the checkpoint lacks; unused: what the
    checkpoint has beside them.
    """

    def __init__(self, step: int, report: RestoreReport | None, missing: list[str], unused: list[str]) -> None:
        self.step = step
        self.report = report
        self.missing = missing
        self.unused = unused

    def assert_existing_objects_matched(self) -> "CheckpointStatus":
        """Raises AssertionError, naming them, if an object has a part that the checkpoint lacks."""
        lacking = self.missing + (list(self.report.missing) + list(self.report.mismatched) if self.report else [])
        if lacking:
            raise AssertionError(f"the checkpoint lacks {', '.join(lacking)}")
        return self

    def assert_consumed(self) -> "CheckpointStatus":
        """Raises AssertionError, naming them, if an object has a part that the checkpoint lacks, or the other way round."""
        self.assert_existing_objects_matched()
        unused = self.unused + (list(self.report.extra) if self.report else [])
        if unused:
            raise AssertionError(f"no object has {', '.join(unused)} of the checkpoint")
        return self

    def assert_nontrivial_match(self) -> "CheckpointStatus":
        """Raises AssertionError if nothing was restored."""
        if self.report is None and not self._restored:
            raise AssertionError("nothing in the checkpoint fits an object")
        return self

    def expect_partial(self) -> "CheckpointStatus":
        """Does nothing: what was not found is only reported."""
        return self

    _restored = True

    def __repr__(self) -> str:
        return f"CheckpointStatus(step={self.step}, missing={self.missing}, unused={self.unused})"


class Checkpoint:
    """Saves and restores objects together, by the names that they have as keyword arguments.

    One of them may be an embedding, whose tables and slots are saved, in one commit with everything else. The others are
    variables, arrays, numbers and texts; dicts and lists of them; modules and optimizers of PyTorch; variables and Keras
    models of TensorFlow; and other objects, whose attributes are looked through for variables and arrays. What cannot be changed
    in place, such as a number or an array of JAX, is replaced in its container, or as attribute of this object.

    >>> table = tpu.TableConfig(8, 4, name="films")
    >>> embedding = tpu.TPUEmbedding(tpu.FeatureConfig(table), tpu.SGD(0.1))
    >>> embedding.build()
    >>> checkpoint = tpu.Checkpoint(embedding=embedding, model={"kernel": np.ones(3)})
    >>> path = checkpoint.save(directory + "/run")
    >>> embedding.embedding_tables[table][:] = 0
    >>> checkpoint.restore(path).assert_consumed().step
    0
    >>> bool(embedding.embedding_tables[table].any())
    True
    """

    def __init__(self, **objects: Any) -> None:
        engines = [name for name, value in objects.items() if isinstance(value, (Embedding, ServingEmbedding))]
        if len(engines) > 1:
            raise ValueError(f"one commit holds the tables of one embedding, got {' and '.join(map(repr, engines))}; use a "
                             "Checkpoint for each")
        for name in objects:
            if hasattr(type(self), name):
                raise ValueError(f"an object must not be named '{name}', which a Checkpoint has itself")
        self._names = list(objects)
        self._engine = engines[0] if engines else None
        self.save_counter = 0
        for name, value in objects.items():
            setattr(self, name, value)

    def save(self, file_prefix: str | os.PathLike[str], options: Any = None) -> str:
        """Saves everything as one step of the run directory `file_prefix`, and returns the step's directory. A step of an
        embedding is the number of its training batches; without one, saves are counted. Raises RuntimeError if that step is
        saved already or the embedding is not built, TypeError for an object that cannot be saved, OSError.
        """
        engine = self._the_engine()
        if isinstance(engine, ServingEmbedding):
            raise TypeError(f"'{self._engine}' must be an embedding that is trained, got {type(engine).__name__}")
        plain, tensors, maps = {}, {}, {}
        for place in self._all_places():
            value = place.read()
            if isinstance(value, IdMap):
                maps[place.path] = value
            elif isinstance(value, (*_PLAIN, list)):
                plain[place.path] = value
            else:
                tensors[place.path] = np.asarray(value)
        state = CallerState({"checkpoint": {"save_counter": self.save_counter + 1, "values": plain}}, tensors)
        if engine is not None:
            directory = engine.save(file_prefix, state, maps)
        else:
            counter = Variable(self.save_counter + 1, "save_counter", dtype="int64")
            directory = save_variables(file_prefix, self._next_step(file_prefix), {"save_counter": counter}, state)
        self.save_counter += 1
        return str(os.fspath(directory))

    def restore(self, save_path: str | os.PathLike[str], options: Any = None) -> CheckpointStatus:
        """Gives the objects their saved values. save_path: the directory of a step, or of a run, which stands for its latest step.
        Nothing changes if the checkpoint cannot be read, or an array has another shape. Returns a CheckpointStatus, whose
        `assert_consumed` says whether all was found. Raises ValueError, OSError, embertable.DataLossError.
        """
        caller = read_saved_state(save_path).caller
        header = (caller.json or {}).get("checkpoint", {}) if isinstance(caller.json, dict) else {}
        saved: dict[str, Any] = {**header.get("values", {}), **caller.tensors}
        saved.pop("save_counter", None)
        places = list(self._all_places())
        found = [place for place in places if place.path in saved]
        for place in found:
            _check_fits(place, saved[place.path])
        engine, report = self._the_engine(), None
        if engine is not None:
            report = engine.restore(save_path)
        for place in found:
            place.write(saved[place.path])
        known = {place.path for place in places}
        self.save_counter = int(header.get("save_counter", self.save_counter))
        status = CheckpointStatus(report.step if report else read_saved_state(save_path).step, report,
                                  sorted(known - saved.keys()), sorted(saved.keys() - known))
        status._restored = bool(found)
        return status

    def _the_engine(self) -> Any:
        return None if self._engine is None else getattr(self, self._engine)

    def _all_places(self) -> Iterator[_Place]:
        seen: set[int] = set()
        for name in self._names:
            if name != self._engine:
                yield from _places(name, getattr(self, name), lambda saved, name=name: setattr(self, name, saved), seen)  # type: ignore[misc]

    def _next_step(self, run: str | os.PathLike[str]) -> int:
        if not os.path.isdir(run):
            return 1
        from .. import CheckpointRun
        with CheckpointRun(run) as opened:
            return max(opened.steps(), default=0) + 1


def _check_fits(place: _Place, saved: Any) -> None:
    old = place.read()
    if isinstance(old, (*_PLAIN, list)) or not isinstance(saved, np.ndarray):
        return
    shape = tuple(old.shape)
    if shape != saved.shape:
        raise ValueError(f"'{place.path}' has shape {shape}, the checkpoint has {saved.shape}")


def latest_checkpoint(checkpoint_dir: str | os.PathLike[str], latest_filename: Any = None) -> str | None:
    """Returns the directory of the latest step of a run that can be opened, or None if there is none. checkpoint_dir: the run's.

    >>> tpu.latest_checkpoint(directory + "/nothing") is None
    True
    """
    try:
        return os.fspath(find_checkpoint(checkpoint_dir))
    except OSError:
        return None
