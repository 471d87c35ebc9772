"""Checkpoints of an embedding and of what is trained beside it, in one commit."""

import contextlib
import copy
import importlib
import json
import math
import os
import pathlib
import re
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .. import (CallerState, CheckpointRun, Embedding, IdMap, RestoreReport, ServingEmbedding, ShardedVariable, Variable, find_checkpoint,
                read_saved_state, save_variables)
from .._arguments import path_of, require_kind, whole_number

_MOST_LEVELS = 64
_PLAIN = (bool, int, float, str, type(None))
_CODE = (types.FunctionType, types.BuiltinFunctionType, types.MethodType, types.ModuleType, type)  # part of a program, not of its state


_DATA = (bytes, bytearray, memoryview, set, frozenset, complex)  # that no place holds


class _Place:
    """A value that a checkpoint keeps: how it is read, and how a saved one takes its place."""

    def __init__(self, path: str, read: Callable[[], Any], write: Callable[[Any], None], whole: "_Whole | None" = None,
                 back: Callable[[], None] | None = None, sure: bool = False, torch_dtype: str | None = None,
                 has_shape: bool = True) -> None:
        """back: puts a value back that is replaced, not changed. sure: a value of the same dtype and shape is never refused.
        torch_dtype: of a tensor of PyTorch that is read as an array. has_shape: a saved array must have the shape of the old one."""
        self.path = path
        self.read = read
        self.write = write
        self.whole = whole  # of which it is a part
        self.sure = sure
        self.torch_dtype = torch_dtype
        self.has_shape = has_shape
        self._back = back

    def undo(self) -> Callable[[], None]:
        """What gives the place the value back that it has now."""
        if self._back is not None:
            return self._back
        old = np.array(self.read())
        return lambda: self.write(old)


class _Saved:
    """What a checkpoint says of its values, by their paths, beside the values. Without one, nothing was saved.

    lists: lengths of those that an object takes as a whole; tensors: dtypes of arrays that were tensors of PyTorch, None if the
    checkpoint was made when none was noted.
    """

    def __init__(self, header: dict[str, Any] | None = None) -> None:
        found = {} if header is None else header
        self.lists: dict[str, int] = found.get("lists", {})
        self.tensors: dict[str, str] | None = found.get("torch")


class _Whole:
    """An object that takes its state at once: what was found is gathered, and everything else stays as it is."""

    def __init__(self, path: str, read: Callable[[], Any], take: Callable[[Any], object]) -> None:
        self.path = path
        self._read = read
        self._take = take
        self.gathered = _copied(read(), lambda value: value)  # what `take` gives to the object

    def take(self) -> None:
        self._take(self.gathered)

    def undo(self) -> Callable[[], None]:
        """What gives the object the state back that it has now."""
        old = _copied(self._read(), _value_copied)

        def undo() -> None:
            self._take(old)

        return undo

    def place_of(self, path: str) -> _Place | None:
        """A place for a saved value that the object lacks so far, None if it cannot take it."""
        return None

    def lists(self) -> Iterator[tuple[str, int]]:
        """Path and length of each list that is taken as a whole."""
        yield from ()

    def expect(self, saved: "_Saved") -> None:
        """Says what was saved, before places are asked for."""


def _copied(state: Any, leaf: Callable[[Any], Any]) -> Any:
    """A state in containers of its own, since those of an object's state may be the object's."""
    if isinstance(state, dict):
        made = copy.copy(state)  # with what its class has beside the items
        for key, item in state.items():  # `update` of a Counter counts
            made[key] = _copied(item, leaf)
        return made
    if isinstance(state, list):
        return [_copied(item, leaf) for item in state]
    return leaf(state)


def _value_copied(value: Any) -> Any:
    if _is_torch(value) and hasattr(value, "clone"):
        return value.detach().clone()
    return np.copy(value) if isinstance(value, np.ndarray) else value


def _is_torch(value: Any) -> bool:
    return type(value).__module__.split(".")[0] == "torch"


def _array_of(value: Any) -> np.ndarray:
    if _is_torch(value):
        value = value.detach().cpu()
        return np.asarray(value.float() if "bfloat16" in str(value.dtype) or "float8" in str(value.dtype) else value)
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
    if isinstance(old, np.generic):
        return saved[()]
    if type(old).__module__.split(".")[0] in ("jax", "jaxlib"):
        return importlib.import_module("jax.numpy").asarray(saved)
    if type(old).__module__.split(".")[0] == "tensorflow":
        return importlib.import_module("tensorflow").convert_to_tensor(saved)
    return saved


class _Walk:
    """Finds the places of objects, and of what they contain."""

    def __init__(self, saved: _Saved) -> None:
        self.wholes: list[_Whole] = []
        self._saved = saved
        self._seen: set[int] = set()
        self._object = ("", "")  # path and class of what the caller names

    def places(self, path: str, value: Any, replace: Callable[[Any], None]) -> Iterator[_Place]:
        """Yields the places of an object that the caller names. `replace` puts another object in its place. Raises TypeError for
        what has none."""
        self._object = path, type(value).__name__
        return self._places(path, value, replace, 0, True)

    def _places(self, path: str, value: Any, replace: Callable[[Any], None], level: int, named: bool) -> Iterator[_Place]:
        """`named`: the caller has named the object, or a dict, list or tuple that it is in."""
        if level > _MOST_LEVELS:
            raise ValueError(f"'{path}': objects must be at most {_MOST_LEVELS} within each other")
        if isinstance(value, _CODE):
            if level == 0:
                raise _refusal(path, value)
        elif isinstance(value, (Variable, ShardedVariable)):
            yield _Place(path, lambda: value, _assigning(value), sure=value.assignable)
        elif isinstance(value, (*_PLAIN, IdMap)):
            yield _Place(path, lambda: value, replace, back=lambda: replace(value))
        elif isinstance(value, np.ndarray) and value.flags.writeable:
            yield _Place(path, lambda: value, _into_array(value), sure=type(value) in (np.ndarray, np.memmap))
        elif hasattr(value, "assign") and hasattr(value, "dtype"):  # tf.Variable
            yield _Place(path, lambda: value.numpy(), _assigning(value))
        elif _is_torch(value) and hasattr(value, "copy_"):
            yield _Place(path, lambda: _array_of(value), lambda saved: value.data.copy_(_torch_tensor(saved)))
        elif _is_array(value):
            yield _Place(path, lambda: _array_of(value), lambda saved: replace(_like(value, saved)), back=lambda: replace(value))
        elif id(value) not in self._seen:  # else it has its places already
            self._seen.add(id(value))
            yield from self._places_within(path, value, replace, level, named)

    def _places_within(self, path: str, value: Any, replace: Callable[[Any], None], level: int, named: bool) -> Iterator[_Place]:
        if hasattr(value, "state_dict") and hasattr(value, "load_state_dict"):
            yield from self._of(_State(path, value))
        elif hasattr(value, "get_weights") and hasattr(value, "set_weights"):
            yield from self._of(_Weights(path, value))
        elif isinstance(value, dict):
            for key, item in value.items():
                yield from self._places(f"{path}/{key}", item, _setter(value, key), level + 1, named)
        elif isinstance(value, list):
            for i, item in enumerate(value):
                yield from self._places(f"{path}/{i}", item, _setter(value, i), level + 1, named)
        elif isinstance(value, tuple):
            items = list(value)
            for i, item in enumerate(value):
                yield from self._places(f"{path}/{i}", item, _tuple_setter(value, items, i, replace), level + 1, named)
        elif hasattr(value, "__dict__"):
            found = False
            for name, item in sorted(vars(value).items()):
                if isinstance(item, _PLAIN) or not (hasattr(item, "__dict__") or _may_have_places(item)):
                    continue
                for place in self._places(f"{path}/{name}", item, _attribute_setter(value, name), level + 1, False):
                    found = True
                    yield place
            if named and not found:
                raise _refusal(path, value)
        elif named:
            raise _refusal(path, value)
        elif isinstance(value, _DATA):
            raise _refusal(path, value, self._object)

    def _of(self, whole: "_State | _Weights") -> Iterator[_Place]:
        self.wholes.append(whole)
        whole.expect(self._saved)
        return whole.places()


def _may_have_places(value: Any) -> bool:
    return isinstance(value, (dict, list, tuple, Variable, ShardedVariable, IdMap)) or _is_array(value) or any(
        hasattr(value, name) for name in ("assign", "copy_", "state_dict", "get_weights"))


def _refusal(path: str, value: Any, within: tuple[str, str] | None = None) -> TypeError:
    """within: path and class of an object of the caller's, among whose attributes the value is."""
    part = f", of the {within[1]} '{within[0]}'," if within else ""
    way_out = f": give '{within[0]}' a list or dict of those of its variables that are to be saved" if within else ""
    return TypeError(f"'{path}'{part} must be a variable, an array, a number, a text, an IdMap, an object that has some, or a dict, list "
                     f"or tuple of them, got {type(value).__name__}{way_out}")


def _setter(container: Any, key: Any) -> Callable[[Any], None]:
    def write(saved: Any) -> None:
        container[key] = saved

    return write


def _attribute_setter(owner: Any, name: str) -> Callable[[Any], None]:
    return lambda saved: setattr(owner, name, saved)


def _tuple_setter(old: Any, items: list[Any], i: int, replace: Callable[[Any], None]) -> Callable[[Any], None]:
    """Replaces the tuple by one with another item i; `items` has those that were replaced before."""

    def write(saved: Any) -> None:
        items[i] = saved
        replace(type(old)(*items) if hasattr(old, "_fields") else type(old)(items))

    return write


def _torch_tensor(saved: Any) -> Any:
    return importlib.import_module("torch").from_numpy(np.array(saved))


class _State(_Whole):
    """A module or an optimizer of PyTorch, or what has its `state_dict` and `load_state_dict`."""

    def __init__(self, path: str, module: Any) -> None:
        super().__init__(path, module.state_dict, module.load_state_dict)
        self._is_torch = any(base.__module__.split(".")[0] == "torch" for base in type(module).__mro__)
        self._taken: set[str] = set()  # lists whose items need not be of the kinds that they were of
        self._saved = _Saved()

    def places(self) -> Iterator[_Place]:
        yield from self._walk(self.path, self.gathered)

    def lists(self) -> Iterator[tuple[str, int]]:
        yield from _lists_in(self.path, self.gathered)

    def expect(self, saved: _Saved) -> None:
        self._saved, lengths = saved, saved.lists
        for path in sorted(lengths, key=lambda path: path.count("/")):  # outer ones first
            names = path[len(self.path) + 1:].split("/")
            if not path.startswith(f"{self.path}/") or _key_in(self.gathered, names[0]) is None:
                continue
            container: Any = self.gathered
            for name in names[:-1]:
                container = _item(container, name, {})
            old = _item(container, names[-1], [])
            if isinstance(old, list):
                self._taken.add(path)
                old[:] = [*old, *[None] * lengths[path]][:lengths[path]]

    def _walk(self, at: str, container: Any) -> Iterator[_Place]:
        for key, item in container.items() if isinstance(container, dict) else enumerate(container):
            place = f"{at}/{key}"
            if isinstance(item, (dict, list)):
                yield from self._walk(place, item)
            elif at in self._taken:
                yield self._leaf(place, container, key, None, self._own(place, item))
            elif isinstance(item, tuple) and all(isinstance(part, _PLAIN) for part in item):
                yield self._leaf(place, container, key, list(item), tuple)
            elif isinstance(item, _PLAIN):
                yield self._leaf(place, container, key, item, self._own(place))
            elif _is_torch(item):
                yield self._leaf(place, container, key, _array_of(item), _as_tensor_of(item.dtype), _name_of(item.dtype))
            elif _is_array(item):
                yield self._leaf(place, container, key, _array_of(item), np.copy)
            elif not isinstance(item, _CODE):
                raise _refusal(place, item)

    def _own(self, path: str, old: Any = None) -> Callable[[Any], Any]:
        """Makes what a saved value was, where the value that the object has need not be of its kind."""

        def convert(saved: Any) -> Any:
            if isinstance(saved, list):  # a tuple is saved as one
                return tuple(saved)
            if not isinstance(saved, np.ndarray):
                return saved
            if self._saved.tensors is not None:
                dtype = self._saved.tensors.get(path)
                return saved if dtype is None else _torch_tensor(saved).to(_torch_dtype(path, dtype))
            if _is_torch(old):
                return _torch_tensor(saved).to(old.dtype)
            return _torch_tensor(saved) if self._is_torch else saved

        return convert

    def _leaf(self, path: str, container: Any, key: Any, value: Any, convert: Callable[[Any], Any],
              torch_dtype: str | None = None) -> _Place:
        def write(saved: Any) -> None:
            container[key] = convert(saved)

        return _Place(path, lambda: value, write, self, torch_dtype=torch_dtype, has_shape=not _is_extra_state(key))

    def place_of(self, path: str) -> _Place | None:
        """Dicts within the state may have keys that a new object lacks: an optimizer makes its slots in the first step."""
        *inner, last = path[len(self.path) + 1:].split("/")
        if not inner:
            return None
        container: Any = self.gathered
        for depth, name in enumerate(inner):
            if not isinstance(container, dict):
                return None
            if _key_in(container, name) is None and depth == 0:
                return None
            container = container.get(_key_in(container, name), {})
        if not isinstance(container, dict):
            return None

        def write(saved: Any) -> None:
            within: Any = self.gathered
            for name in inner:
                known = _key_in(within, name)
                within = within.setdefault(_new_key(within, name) if known is None else known, {})
            within[_new_key(within, last)] = self._own(path)(saved)

        return _Place(path, lambda: None, write, self)


def _lists_in(path: str, container: Any) -> Iterator[tuple[str, int]]:
    """Lists of values. Those of dicts, such as an optimizer's groups, have the length that the object gives them."""
    for key, item in container.items() if isinstance(container, dict) else enumerate(container):
        if isinstance(item, list) and not any(isinstance(part, dict) for part in item):
            yield f"{path}/{key}", len(item)
        if isinstance(item, (dict, list)):
            yield from _lists_in(f"{path}/{key}", item)


def _item(container: Any, name: str, absent: Any) -> Any:
    """An item of a dict or list, which gets `absent` if it has none; that itself for anything else."""
    if isinstance(container, dict):
        known = _key_in(container, name)
        return container.setdefault(_new_key(container, name) if known is None else known, absent)
    if not isinstance(container, list) or not name.isdecimal() or int(name) >= len(container):
        return absent
    if container[int(name)] is None:
        container[int(name)] = absent
    return container[int(name)]


def _key_in(container: dict[Any, Any], name: str) -> Any:
    return next((key for key in container if str(key) == name), None)


def _new_key(container: dict[Any, Any], name: str) -> Any:
    """Numbers are ints, as the parameters of an optimizer have them, unless the keys beside them are texts."""
    return int(name) if name.isdecimal() and all(isinstance(key, int) for key in container) else name


def _is_extra_state(key: Any) -> bool:
    """PyTorch's name for what a module keeps beside its tensors, in a form of its own; the state of embertable.torch's tables is a
    text there, whose length is no property of the module."""
    return isinstance(key, str) and key.split(".")[-1] == "_extra_state"


def _name_of(torch_dtype: Any) -> str:
    return str(torch_dtype).removeprefix("torch.")


def _torch_dtype(path: str, name: str) -> Any:
    dtype = getattr(importlib.import_module("torch"), name, None)
    if dtype is None:
        raise ValueError(f"'{path}' is of torch.{name}, which this version of PyTorch does not have")
    return dtype


def _as_tensor_of(dtype: Any) -> Callable[[Any], Any]:
    return lambda saved: _torch_tensor(saved).to(dtype) if isinstance(saved, np.ndarray) else saved


class _Weights(_Whole):
    """A model of Keras, or what has its `get_weights` and `set_weights`."""

    def __init__(self, path: str, model: Any) -> None:
        super().__init__(path, lambda: list(model.get_weights()), model.set_weights)

    def places(self) -> Iterator[_Place]:
        for i, weight in enumerate(self.gathered):
            yield _Place(f"{self.path}/{i}", lambda weight=weight: weight, _setter(self.gathered, i), self)  # type: ignore[misc]


@contextlib.contextmanager
def _undone_after_errors() -> Iterator[list[Callable[[], None]]]:
    """Gives a list for what undoes changes. If the body raises, they are called from the last to the first."""
    changes: list[Callable[[], None]] = []
    try:
        yield changes
    except BaseException:
        for undo in reversed(changes):
            with contextlib.suppress(Exception):  # the first error says more
                undo()
        raise


class CheckpointStatus:
    """What a restore found, and what it did not.

    step: of the checkpoint, None if none was given; report: the embedding's RestoreReport, or None; missing: places of the objects that the checkpoint lacks; unused: what the
    checkpoint has beside them.
    """

    def __init__(self, step: int | None, report: RestoreReport | None, missing: list[str], unused: list[str]) -> None:
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


class _NothingToRestore(CheckpointStatus):
    """What `restore(None)` returns, as `latest_checkpoint` of an empty directory asks for: every assertion but expect_partial
    fails, as in TensorFlow."""

    def __init__(self) -> None:
        super().__init__(None, None, [], [])

    def assert_existing_objects_matched(self) -> "CheckpointStatus":
        raise AssertionError("no checkpoint was given (save_path=None), so that nothing was restored")

    assert_consumed = assert_nontrivial_match = assert_existing_objects_matched


class Checkpoint:
    """Saves and restores objects together, by the names that they have as keyword arguments. One that is given without a name has
    the name `root`.

    One of them may be an embedding, whose tables and slots are saved, in one commit with everything else. The others are
    variables, arrays, numbers and texts; dicts, lists and tuples of them; modules and optimizers of PyTorch; variables and Keras
    models of TensorFlow; with an embedding, id maps; and other objects, whose attributes are looked through for variables and
    arrays, and for dicts and lists that have some, while their numbers and texts stay, as in TensorFlow. Functions, methods and
    classes are left out; anything else is a TypeError. What cannot be changed in place, such as a number or an array of JAX, is
    replaced in its container, or as attribute of this object.

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

    def __init__(self, root: Any = None, **objects: Any) -> None:
        if root is not None:
            objects = {"root": root, **objects}
        engines = [name for name, value in objects.items() if isinstance(value, (Embedding, ServingEmbedding))]
        if len(engines) > 1:
            raise ValueError(f"one commit holds the tables of one embedding, got {' and '.join(map(repr, engines))}; use a "
                             "Checkpoint for each")
        for name in objects:
            if hasattr(type(self), name) or name in ("save_counter", "_names", "_engine"):
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
        plain: dict[str, Any] = {}
        special: dict[str, Any] = {}
        tensors, maps = {}, {}
        places, wholes = self._find(_Saved())
        for place in places:
            value = place.read()
            if isinstance(value, IdMap):
                maps[place.path] = value
            elif isinstance(value, (*_PLAIN, list)):
                (plain if _is_finite(value) else special)[place.path] = value
            else:
                tensors[place.path] = np.asarray(value)
        if maps and engine is None:
            raise TypeError(f"'{next(iter(maps))}': an IdMap is saved with an embedding, of which the checkpoint has none; keep its "
                            "`to_bytes()` in a file of your own, or name the embedding")
        header: dict[str, Any] = {"save_counter": self.save_counter + 1, "values": plain}
        if lists := {path: length for whole in wholes for path, length in whole.lists()}:
            header["lists"] = lists
        if wholes:
            header["torch"] = {place.path: place.torch_dtype for place in places if place.torch_dtype is not None}
        if special:  # JSON has no text for these numbers, which json writes and reads in its own
            header["not_finite"] = json.dumps(special)
        state = CallerState({"checkpoint": header}, tensors)
        if engine is not None:
            directory = engine.save(file_prefix, state, maps)
        else:
            counter = Variable(self.save_counter + 1, "save_counter", dtype="int64")
            directory = save_variables(file_prefix, self._next_step(file_prefix), {"save_counter": counter}, state)
        self.save_counter += 1
        return str(os.fspath(directory))

    def restore(self, save_path: str | os.PathLike[str] | None, options: Any = None) -> CheckpointStatus:
        """Gives the objects their saved values. save_path: the directory of a step, or of a run, which stands for its latest step;
        None, which `latest_checkpoint` gives where nothing is saved, restores nothing.
        Nothing changes if the checkpoint cannot be read, or if a value is of another kind, dtype or shape. Objects with a
        state_dict or weights take what was found at once, and keep the rest. If an object refuses its value, or the
        embedding its tables, what has changed so far gets back what it had, but for an object that refuses that too. The tables
        change after all that may refuse a value, then variables of Embertable and NumPy arrays, then id maps. Returns a
        CheckpointStatus, whose `assert_consumed` says whether all was found. Raises ValueError, OSError,
        embertable.DataLossError, and what an object raises.
        """
        if save_path is None:
            return _NothingToRestore()
        save_path = find_checkpoint(save_path)  # a run may be saved to meanwhile
        state = read_saved_state(save_path)
        caller = state.caller  # once, since every reading makes its arrays
        header = (caller.json or {}).get("checkpoint", {}) if isinstance(caller.json, dict) else {}
        saved: dict[str, Any] = {**header.get("values", {}), **json.loads(header.get("not_finite", "{}")), **caller.tensors}
        saved.pop("save_counter", None)
        places, wholes = self._find(_Saved(header))
        engine, report = self._the_engine(), None
        known = {place.path for place in places}
        maps = {place.path: place for place in places if isinstance(place.read(), IdMap)}
        saved_maps = _id_maps_in(save_path) if engine is not None and maps else set()
        for path in sorted(saved.keys() - known):
            for whole in wholes:
                place = whole.place_of(path) if path.startswith(whole.path + "/") else None
                if place is not None:
                    places.append(place)
                    known.add(path)
        found = [place for place in places if place.path in saved and place.path not in maps]
        for place in found:
            _check_fits(place, saved[place.path])
        for path in sorted(maps.keys() & saved_maps):
            maps[path].write(maps[path].read())  # raises where nothing can be put, while nothing has changed
        with _undone_after_errors() as changes:
            for place in found:
                if place.sure:
                    continue
                if place.whole is None:
                    changes.append(place.undo())
                place.write(saved[place.path])
            for whole in wholes:
                if any(place.whole is whole for place in found):
                    changes.append(whole.undo())
                    whole.take()
            if engine is not None:
                report = engine.restore(save_path)
        for place in found:
            if place.sure:
                place.write(saved[place.path])
        found_maps = {path: saved_map for path, saved_map in (report.id_maps if report else {}).items() if path in maps}
        for path, saved_map in found_maps.items():
            maps[path].write(saved_map)
        self.save_counter = int(header.get("save_counter", self.save_counter))
        there = saved.keys() | found_maps.keys()
        status = CheckpointStatus(state.step, report, sorted(known - there), sorted(there - known))
        status._restored = bool(found or found_maps)
        return status

    def _the_engine(self) -> Any:
        return None if self._engine is None else getattr(self, self._engine)

    def _find(self, saved: _Saved) -> tuple[list[_Place], list[_Whole]]:
        """Returns the places of all objects, and the objects that take their parts at once."""
        walk, places = _Walk(saved), {}
        for name in self._names:
            if name == self._engine:
                continue
            for place in walk.places(name, getattr(self, name), _attribute_setter(self, name)):
                if place.path in places:
                    raise ValueError(f"two values have the path '{place.path}' in a checkpoint; give their keys other names")
                places[place.path] = place
        return list(places.values()), walk.wholes

    def _next_step(self, run: str | os.PathLike[str]) -> int:
        if not os.path.isdir(run):
            return 1
        with CheckpointRun(run) as opened:
            return max(opened.steps(), default=0) + 1


class CheckpointManager:
    """Saves a Checkpoint again and again in one run directory, and keeps the newest steps.

    checkpoint: a Checkpoint; directory: the run's; max_to_keep: how many steps stay after a save, the highest ones, None: all.
    init_fn: what restore_or_initialize calls where nothing is saved. Raises TypeError, ValueError.

    >>> model = {"kernel": np.ones(3)}
    >>> manager = tpu.CheckpointManager(tpu.Checkpoint(model=model), directory + "/run", max_to_keep=2)
    >>> manager.restore_or_initialize() is None
    True
    >>> for _ in range(3):
    ...     path = manager.save()
    >>> [step[-2:] for step in manager.checkpoints], manager.latest_checkpoint == path
    (['02', '03'], True)
    """

    def __init__(self, checkpoint: Checkpoint, directory: str | os.PathLike[str], max_to_keep: int | None,
                 init_fn: Callable[[], object] | None = None) -> None:
        title = "CheckpointManager"
        require_kind(title, "checkpoint", checkpoint, Checkpoint, "a Checkpoint")
        if max_to_keep is not None and whole_number(title, "max_to_keep", max_to_keep) < 1:
            raise ValueError(f"{title}: max_to_keep must be >= 1, or None for all, got {max_to_keep}")
        if init_fn is not None and not callable(init_fn):
            raise TypeError(f"{title}: init_fn must be a function or None, got {type(init_fn).__name__}")
        self._checkpoint = checkpoint
        self._directory = path_of(title, "directory", directory)
        self._max_to_keep = max_to_keep
        self._init_fn = init_fn

    def __repr__(self) -> str:
        return f"CheckpointManager({self._directory!r}, max_to_keep={self._max_to_keep})"

    @property
    def checkpoint(self) -> Checkpoint:
        return self._checkpoint

    @property
    def directory(self) -> str:
        return self._directory

    @property
    def checkpoints(self) -> list[str]:
        """Directories of the steps that are saved, from the lowest to the highest."""
        names = os.listdir(self._directory) if os.path.isdir(self._directory) else []
        steps = sorted((int(name[5:]), name) for name in names if re.fullmatch(r"step_\d{12,}", name))
        return [os.path.join(self._directory, name) for _, name in steps]

    @property
    def latest_checkpoint(self) -> str | None:
        """What latest_checkpoint gives for the directory."""
        return latest_checkpoint(self._directory)

    def save(self, checkpoint_number: None = None, check_interval: Any = True, options: Any = None) -> str:
        """Saves, removes the lowest steps beyond max_to_keep, though none from the saved one on, and returns that one's directory.
        checkpoint_number must be None: a step's number is that of Checkpoint.save, whose errors it raises. check_interval, options:
        have no effect.
        """
        if checkpoint_number is not None:
            raise ValueError("CheckpointManager: checkpoint_number must be None, since a step has the number of training batches or "
                             f"saves, got {checkpoint_number!r}")
        saved = self._checkpoint.save(self._directory)
        if self._max_to_keep is not None:
            strategy = getattr(self._checkpoint._the_engine(), "strategy", None)
            steps = self.checkpoints
            from_saved = len(steps) - [os.path.basename(step) for step in steps].index(os.path.basename(saved))
            with CheckpointRun(self._directory, strategy) as run:
                run.keep(max(self._max_to_keep, from_saved))
        return saved

    def restore_or_initialize(self) -> str | None:
        """Restores the latest step and returns its directory. Where there is none it calls init_fn, and returns None. Raises what
        Checkpoint.restore raises.
        """
        latest = self.latest_checkpoint
        if latest is not None:
            self._checkpoint.restore(latest)
        elif self._init_fn is not None:
            self._init_fn()
        return latest


def _id_maps_in(directory: str | os.PathLike[str]) -> set[str]:
    """The names of the id maps of a checkpoint."""
    manifest = json.loads((pathlib.Path(directory) / "manifest.json").read_bytes())
    return {one["name"] for file in manifest["files"] if file["kind"] == "id_maps" for one in file["tensors"]}


def _is_finite(value: Any) -> bool:
    return all(math.isfinite(part) for part in (value if isinstance(value, list) else [value]) if isinstance(part, float))


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "a bool"
    if isinstance(value, (int, float)):
        return "a number"
    if isinstance(value, str):
        return "a text"
    if isinstance(value, list):
        return f"a tuple of {len(value)}"
    return "None" if value is None else "an array"


def _check_fits(place: _Place, saved: Any) -> None:
    """Raises ValueError for another kind, dtype or shape. None stands for any plain value."""
    old = place.read()
    if not isinstance(old, (*_PLAIN, list, Variable, ShardedVariable)):
        old = np.asarray(old)
    mine, its = _kind(old), _kind(saved)
    if place.whole is not None and {mine, its} == {"a number", "an array"} and np.shape(old) == np.shape(saved) == ():
        return  # the state of an optimizer may have both in turn
    if mine != its and not ("None" in (mine, its) and "an array" not in (mine, its)) and (old is not None or place.whole is None):
        raise ValueError(f"'{place.path}' is {mine}, the checkpoint has {its}")
    if mine != "an array" or its != mine:
        return
    if place.has_shape and old.shape != saved.shape:
        raise ValueError(f"'{place.path}' has shape {old.shape}, the checkpoint has {saved.shape}")
    if old.dtype.newbyteorder("=") != saved.dtype.newbyteorder("="):
        raise ValueError(f"'{place.path}' is of {old.dtype}, the checkpoint has {saved.dtype}")


def latest_checkpoint(checkpoint_dir: str | os.PathLike[str], latest_filename: Any = None) -> str | None:
    """Returns the directory of the latest step of a run that can be opened, or None where there is no step. checkpoint_dir: the
    run's. Raises DataLossError where all steps are damaged.

    >>> tpu.latest_checkpoint(directory + "/nothing") is None
    True
    """
    try:
        return os.fspath(find_checkpoint(checkpoint_dir))
    except FileNotFoundError:
        return None
