"""Checkpoint(model=..., embedding=...): everything in one commit, and what is missing said."""

import collections
import math
import pathlib
import tracemalloc
import types

import numpy as np
import pytest

import embertable as et
from embertable import tpu_embedding as tpu
from fixture import USER_ROWS, user


def an_embedding(strategy=True, name="user"):
    config = tpu.FeatureConfig(user(name=name))
    if not strategy:
        return tpu.TPUEmbedding(config, tpu.Adagrad(0.1))
    with tpu.TPUStrategy(threads=1).scope():
        return tpu.TPUEmbedding(config, tpu.Adagrad(0.1))


def train(embedding):
    embedding.enqueue(np.array([1, 2]))
    embedding.apply_gradients(np.ones_like(embedding.dequeue()))


class Model:
    def __init__(self, value):
        self.kernel = et.Variable(np.full((2, 3), value, np.float32))
        self.layers = [et.ShardedVariable([et.Variable([value]), et.Variable([value + 1.0])]), {"bias": np.full(2, value)}]
        self.name = "not saved"
        self.itself = self


def test_an_embedding_and_a_model_come_back_together(tmp_path):
    embedding, model = an_embedding(), Model(5.0)
    train(embedding)
    checkpoint = tpu.Checkpoint(model=model, embedding=embedding, epoch=3)
    path = checkpoint.save(tmp_path / "run")
    assert path == str(tmp_path / "run" / "step_000000000001") == tpu.latest_checkpoint(tmp_path / "run")
    assert checkpoint.save_counter == 1
    digest = embedding.digest()

    other, fresh = an_embedding(), Model(0.0)
    again = tpu.Checkpoint(model=fresh, embedding=other, epoch=0)
    status = again.restore(path).assert_consumed().assert_nontrivial_match()
    assert status.step == 1 and other.digest() == digest and other.step == 1
    assert fresh.kernel.numpy().tolist() == [[5] * 3] * 2 and fresh.layers[0].numpy().tolist() == [5, 6]
    assert fresh.layers[1]["bias"].tolist() == [5, 5] and again.epoch == 3 and again.save_counter == 1
    train(other)
    again.save(tmp_path / "run")
    assert again.save_counter == 2 and tpu.latest_checkpoint(tmp_path / "run") == str(tmp_path / "run" / "step_000000000002")


def test_the_latest_of_damaged_steps_is_an_error(tmp_path):
    embedding = an_embedding()
    train(embedding)
    path = tpu.Checkpoint(embedding=embedding).save(tmp_path / "run")
    (pathlib.Path(path) / "manifest.json").write_text("garbage")
    with pytest.raises(et.DataLossError, match="manifest.json"):
        tpu.latest_checkpoint(tmp_path / "run")
    (tmp_path / "empty").mkdir()
    assert tpu.latest_checkpoint(tmp_path / "empty") is tpu.latest_checkpoint(tmp_path / "none") is None


def test_it_is_served_by_a_plain_object(tmp_path):
    embedding = an_embedding()
    train(embedding)
    tpu.Checkpoint(model=Model(1.0), embedding=embedding).save(tmp_path / "run")
    plain = an_embedding(strategy=False)
    status = tpu.Checkpoint(embedding=plain).restore(tmp_path / "run")
    (rows,) = plain.embedding_tables.values()
    assert np.array_equal(rows, embedding.read_rows("user", np.arange(16))) and not np.array_equal(rows, USER_ROWS)
    with pytest.raises(AssertionError, match="model/kernel"):
        status.assert_consumed()
    status.assert_existing_objects_matched().expect_partial()
    serving = tpu.TPUEmbeddingForServing(tpu.FeatureConfig(user()), tpu.Adagrad(0.1))
    tpu.Checkpoint(embedding=serving).restore(tmp_path / "run")
    assert np.array_equal(serving(np.array([1])), rows[1:2])
    with pytest.raises(TypeError, match="trained"):
        tpu.Checkpoint(embedding=serving).save(tmp_path / "other")


def test_without_an_embedding_saves_are_counted(tmp_path):
    model = {"w": et.Variable([1.0, 2.0]), "step": 7, "text": "a", "flag": True, "nothing": None}
    checkpoint = tpu.Checkpoint(model=model)
    first, second = checkpoint.save(tmp_path / "run"), checkpoint.save(tmp_path / "run")
    assert first != second
    model["w"].assign([0.0, 0.0])
    model.update(step=0, text="", flag=False)
    checkpoint.restore(first).assert_consumed()
    assert model["w"].numpy().tolist() == [1, 2] and (model["step"], model["text"], model["flag"]) == (7, "a", True)


def test_what_does_not_fit_changes_nothing(tmp_path):
    embedding = an_embedding()
    train(embedding)
    path = tpu.Checkpoint(embedding=embedding, w=np.ones(3), v=np.ones(2)).save(tmp_path / "run")
    fresh, v = an_embedding(), np.zeros(2)
    before = an_embedding(strategy=False).embedding_tables
    with pytest.raises(ValueError, match=r"'w' has shape \(4,\), the checkpoint has \(3,\)"):
        tpu.Checkpoint(embedding=fresh, w=np.zeros(4), v=v).restore(path)
    assert not fresh.built and fresh.step == 0 and v.tolist() == [0, 0] and len(before) == 1
    with pytest.raises(ValueError):
        tpu.Checkpoint(embedding=an_embedding(name="other")).restore(path)
    with pytest.raises(AssertionError, match="lacks u"):
        tpu.Checkpoint(embedding=fresh, u=np.zeros(1)).restore(path).assert_existing_objects_matched()
    with pytest.raises(OSError):
        tpu.Checkpoint(w=v).restore(tmp_path / "nothing")


def test_what_cannot_be_saved_is_named(tmp_path):
    with pytest.raises(ValueError, match="'a' and 'b'"):
        tpu.Checkpoint(a=an_embedding(), b=an_embedding())
    with pytest.raises(ValueError, match="'save'"):
        tpu.Checkpoint(save=np.ones(1))
    with pytest.raises(TypeError, match="'x'"):
        tpu.Checkpoint(x=object.__new__(type("Bare", (), {"__slots__": ()}))).save(tmp_path / "run")
    with pytest.raises(RuntimeError):  # not built
        tpu.Checkpoint(embedding=an_embedding()).save(tmp_path / "run")
    embedding = an_embedding()
    train(embedding)
    checkpoint = tpu.Checkpoint(embedding=embedding)
    checkpoint.save(tmp_path / "run")
    with pytest.raises(RuntimeError, match="saved"):
        checkpoint.save(tmp_path / "run")
    assert checkpoint.save_counter == 1


class FakeModule:
    """What Checkpoint uses of a module of PyTorch."""

    def __init__(self, value):
        self.state = {"weight": np.full(2, value), "state": {0: {"step": value, "betas": (value, 0.5)}}, "none": None}

    def state_dict(self):
        return {"weight": self.state["weight"].copy(), "state": {0: dict(self.state["state"][0])}, "none": None}

    def load_state_dict(self, state):
        self.state = state
        self.loads = getattr(self, "loads", 0) + 1


class Lists(FakeModule):
    """An optimizer that keeps lists, which grow with its steps, as LBFGS does."""

    def __init__(self, steps, betas=(0.9, 0.5)):
        self.state = {"state": {}, "groups": [{"betas": betas}]}
        if steps:
            self.state["state"][0] = {"old": [np.full(2, float(i)) for i in range(steps)], "al": [None, 1.5, np.ones(1)][:steps],
                                      "within": [[i] * i for i in range(steps)], "none": [], "pair": (1, steps)}

    def state_dict(self):
        return {"state": dict(self.state["state"]), "groups": [dict(group) for group in self.state["groups"]]}


@pytest.mark.parametrize("before", [0, 1, 3, 12])
def test_lists_come_back_as_lists_of_their_length(tmp_path, before):
    path = tpu.Checkpoint(one=Lists(11), none=Lists(0)).save(tmp_path / "run")
    checkpoint = tpu.Checkpoint(one=Lists(before, (0.0, 0.0)), none=Lists(0))
    checkpoint.restore(path).assert_consumed()
    assert str(checkpoint.one.state_dict()) == str(Lists(11).state_dict()) and checkpoint.none.state["state"] == {}


def test_arrays_of_either_byte_order_are_restored(tmp_path):
    path = tpu.Checkpoint(big=np.array([1, 2], ">f4"), little=np.array([3, 4], "<i8")).save(tmp_path / "run")
    checkpoint = tpu.Checkpoint(big=np.zeros(2, ">f4"), little=np.zeros(2, ">i8"))
    checkpoint.restore(path).assert_consumed()
    assert checkpoint.big.tolist() == [1, 2] and checkpoint.big.dtype == ">f4" and checkpoint.little.tolist() == [3, 4]
    with pytest.raises(ValueError, match="'big' is of float64, the checkpoint has float32"):
        tpu.Checkpoint(big=np.zeros(2)).restore(path)


class FakeKeras:
    """What Checkpoint uses of a model of Keras."""

    def __init__(self, value):
        self.weights = [np.full(2, value), np.full((1, 2), value)]

    def get_weights(self):
        return [weight.copy() for weight in self.weights]

    def set_weights(self, weights):
        self.weights = weights


def test_state_dicts_and_weights_take_effect_at_once(tmp_path):
    torch_like, keras_like = FakeModule(3.0), FakeKeras(4.0)
    path = tpu.Checkpoint(optimizer=torch_like, model=keras_like).save(tmp_path / "run")
    module, model = FakeModule(0.0), FakeKeras(0.0)
    tpu.Checkpoint(optimizer=module, model=model).restore(path).assert_consumed()
    assert module.loads == 1 and module.state["weight"].tolist() == [3, 3]
    assert module.state["state"][0] == {"step": 3.0, "betas": (3.0, 0.5)}
    assert model.weights[1].tolist() == [[4, 4]]


class Layer:
    """A layer that is called, as those of frameworks are."""

    def __init__(self, value):
        self.kernel = np.full(2, value)
        self.activation = np.tanh
        self.rule = self.__call__

    def __call__(self, x):
        return x @ self.kernel


def test_objects_that_can_be_called_are_saved_and_functions_are_not(tmp_path):
    model = type("Model", (), {})()
    model.layer, model.module, model.function, model.kind = Layer(3.0), FakeModule(4.0), test_it_is_served_by_a_plain_object, Layer
    type(model.module).__call__ = lambda self: None
    try:
        path = tpu.Checkpoint(model=model, top=Layer(5.0)).save(tmp_path / "run")
        fresh = type("Model", (), {})()
        fresh.layer, fresh.module, top = Layer(0.0), FakeModule(0.0), Layer(0.0)
        tpu.Checkpoint(model=fresh, top=top).restore(path).assert_consumed()
    finally:
        del FakeModule.__call__
    assert fresh.layer.kernel.tolist() == [3, 3] and fresh.module.state["weight"].tolist() == [4, 4]
    assert top.kernel.tolist() == [5, 5]


class Nothing:
    def __init__(self):
        self.name = "nothing"


@pytest.mark.parametrize("value", [b"1", bytearray(b"1"), {1}, frozenset(), 1j, object(), Nothing(), len, Nothing])
def test_what_has_no_place_is_refused(tmp_path, value):
    with pytest.raises(TypeError, match="'x' must be a variable, .* got"):
        tpu.Checkpoint(x=value).save(tmp_path / "run")
    if not callable(value):  # functions and classes are passed over
        for container in ({"x": value}, [value], (value,)):
            with pytest.raises(TypeError, match="'c/(x|0)' must be"):
                tpu.Checkpoint(c=container, w=np.ones(1)).save(tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_data_without_a_place_is_refused_below_attributes_too(tmp_path):
    model = Layer(1.0)
    model.lock, model.nothing = object(), Nothing()
    model.config = {"n": 1, "nothing": Nothing()}
    tpu.Checkpoint(model=model).save(tmp_path / "run")
    model.config["key"] = b"1"
    with pytest.raises(TypeError, match="'model/config/key'.*bytes"):
        tpu.Checkpoint(model=model).save(tmp_path / "run")


def test_data_of_an_object_of_another_library_names_the_object(tmp_path):
    optimizer = Layer(1.0)
    optimizer.tracker = types.SimpleNamespace(ids={"all": {1, 2}})  # as optimizers of Keras have
    with pytest.raises(TypeError, match="'opt/tracker/ids/all', of the Layer 'opt', must be .*got set: give 'opt' a list or dict of those of its variables"):
        tpu.Checkpoint(opt=optimizer).save(tmp_path / "run")


def test_two_values_of_one_path_are_refused(tmp_path):
    for tree in ({"a/b": 1, "a": {"b": 2}}, {1: 1, "1": 2}):
        with pytest.raises(ValueError, match="two values have the path 'c/(a/b|1)'"):
            tpu.Checkpoint(c=tree).save(tmp_path / "run")


def test_parts_of_a_state_are_gathered(tmp_path):
    """A module with more parts than were saved takes those that were, once, and keeps the others."""
    saved = FakeModule(3.0)
    path = tpu.Checkpoint(module=saved).save(tmp_path / "run")
    longer = FakeModule(0.0)
    longer.state_dict = lambda: {**FakeModule(0.0).state_dict(), "second": np.full(1, 7.0)}
    status = tpu.Checkpoint(module=longer).restore(path)
    assert status.missing == ["module/second"] and status.unused == [] and longer.loads == 1
    assert longer.state["weight"].tolist() == [3, 3] and longer.state["second"].tolist() == [7]

    fresh = FakeModule(0.0)  # an optimizer without slots, as before its first step
    fresh.state_dict = lambda: {"weight": np.zeros(2), "state": {}, "none": None}
    tpu.Checkpoint(module=fresh).restore(path).assert_consumed()
    assert fresh.state["state"] == {0: {"step": 3.0, "betas": (3.0, 0.5)}} and fresh.loads == 1

    shorter = FakeKeras(0.0)
    shorter.weights.pop()
    path = tpu.Checkpoint(model=FakeKeras(4.0)).save(tmp_path / "keras")
    assert tpu.Checkpoint(model=shorter).restore(path).unused == ["model/1"] and shorter.weights[0].tolist() == [4, 4]


class Scheduler(FakeModule):
    """Counts its milestones, as MultiStepLR of PyTorch does."""

    def __init__(self, *milestones):
        self.state = {"milestones": collections.Counter(milestones)}

    def state_dict(self):
        return dict(self.state)


def test_a_counter_comes_back_as_it_was(tmp_path):
    path = tpu.Checkpoint(scheduler=Scheduler(2, 4, 4)).save(tmp_path / "run")
    same, fresh = Scheduler(2, 4, 4), Scheduler()
    for one in (same, fresh):
        tpu.Checkpoint(scheduler=one).restore(path).assert_consumed()
        assert one.state["milestones"] == collections.Counter({2: 1, 4: 2}) and isinstance(one.state["milestones"], collections.Counter)


def test_a_refused_restore_leaves_a_counter_as_it_was(tmp_path):
    path = tpu.Checkpoint(scheduler=Scheduler(2, 2), last=FakeModule(1.0)).save(tmp_path / "run")
    scheduler, last = Scheduler(2, 3), FakeModule(0.0)
    last.load_state_dict = fail_always
    with pytest.raises(RuntimeError, match="no state"):
        tpu.Checkpoint(scheduler=scheduler, last=last).restore(path)
    assert scheduler.state == {"milestones": {2: 1, 3: 1}} and scheduler.loads == 2


def fail_always(state):
    raise RuntimeError("no state")


class Texts(FakeModule):
    """Keeps a text beside its arrays, as modules of embertable.torch do."""

    def __init__(self, text, weight=2):
        self.state = {"a.weight": np.zeros(weight), "a._extra_state": np.frombuffer(text, np.uint8)}

    def state_dict(self):
        return dict(self.state)


@pytest.mark.parametrize("before", [b"", b"step 7", b"step 10000"])
def test_what_a_module_keeps_beside_its_tensors_may_have_another_length(tmp_path, before):
    path = tpu.Checkpoint(module=Texts(b"step 12")).save(tmp_path / "run")
    fresh = Texts(before)
    tpu.Checkpoint(module=fresh).restore(path).assert_consumed()
    assert bytes(fresh.state["a._extra_state"]) == b"step 12"
    with pytest.raises(ValueError, match=r"'module/a.weight' has shape \(3,\), the checkpoint has \(2,\)"):
        tpu.Checkpoint(module=Texts(before, 3)).restore(path)
    with pytest.raises(ValueError, match=r"'text' has shape \(0,\)"):
        tpu.Checkpoint(text=np.zeros(0, np.uint8)).restore(tpu.Checkpoint(text=np.zeros(2, np.uint8)).save(tmp_path / "array"))


class Live(FakeModule):
    """A module whose state has containers of its own, and which refuses some states halfway."""

    def __init__(self, value, refused=None):
        super().__init__(value)
        self.refused = refused

    def state_dict(self):
        return {"weight": self.state["weight"], "state": self.state["state"], "none": None}

    def load_state_dict(self, state):
        self.state["weight"][:] = state["weight"]  # in place, as torch does
        if state["weight"][0] == self.refused:
            raise KeyError("refused")
        self.state["state"] = state["state"]


class Strict:
    """An object that refuses some values of an attribute."""

    def __init__(self, value, refused=None):
        self.__dict__.update(refused=refused, kernel=np.float32(value))

    def __setattr__(self, name, value):
        if value == self.refused:
            raise AttributeError(f"{name} cannot be {value}")
        super().__setattr__(name, value)


def objects(value, *, module=None, strict=None, weights=None):
    """All kinds of places; one of them may refuse what is restored."""
    keras = FakeKeras(value)
    if weights is not None:
        keras.set_weights = weights
    embedding = an_embedding()
    if value:
        train(embedding)
    else:
        embedding.build(2)
    return {"array": np.full(2, value), "variable": et.Variable([value]), "sharded": et.ShardedVariable([et.Variable([value])]),
            "frozen": np.float32(value), "numbers": (value, [value, "text"]), "first": Live(value), "optimizer": Live(value, module),
            "model": keras, "strict": Strict(value, strict), "embedding": embedding}


def contents(checkpoint):
    return [checkpoint.array.tolist(), checkpoint.variable.numpy().tolist(), checkpoint.sharded.numpy().tolist(), checkpoint.frozen,
            checkpoint.numbers, str(checkpoint.first.state), str(checkpoint.optimizer.state), str(checkpoint.model.weights),
            checkpoint.strict.kernel, checkpoint.embedding.digest(), checkpoint.embedding.step, checkpoint.save_counter]


def fail(weights):
    if weights[0][0]:
        raise RuntimeError("no weights")


@pytest.mark.parametrize("refusal, error", [({"module": 3.0}, KeyError), ({"strict": 3.0}, AttributeError), ({"weights": fail}, RuntimeError)])
def test_an_object_that_refuses_its_state_changes_nothing(tmp_path, refusal, error):
    path = tpu.Checkpoint(**objects(3.0)).save(tmp_path / "run")
    checkpoint = tpu.Checkpoint(**objects(0.0, **refusal))
    before = contents(checkpoint)
    with pytest.raises(error):
        checkpoint.restore(path)
    assert contents(checkpoint) == before
    fine = tpu.Checkpoint(**objects(0.0))
    fine.restore(path).assert_consumed()
    assert contents(fine) == contents(tpu.Checkpoint(**objects(3.0)))[:-1] + [1]


class Probe(FakeModule):
    """What sees how much memory NumPy has when everything that may refuse its value takes it."""

    def load_state_dict(self, state):
        super().load_state_dict(state)
        self.bytes = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()


def test_variables_and_arrays_are_restored_without_a_copy_of_what_they_had(tmp_path):
    names, shape = ("array", "variable", "sharded"), (1 << 14, 64)

    def values(value):
        filled = np.full(shape, value, np.float32)
        return {"probe": Probe(value), "array": filled, "variable": et.Variable(filled),
                "sharded": et.ShardedVariable([et.Variable(filled[:4096]), et.Variable(filled[4096:])])}

    path = tpu.Checkpoint(**values(3.0)).save(tmp_path / "run")
    checkpoint = tpu.Checkpoint(**values(0.0))
    tracemalloc.start()
    try:
        checkpoint.restore(path).assert_consumed()
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert all((np.asarray(getattr(checkpoint, name)) == 3).all() for name in names)
    saved = len(names) * checkpoint.array.nbytes
    assert max(checkpoint.probe.bytes, most) < saved + checkpoint.array.nbytes // 2


class Particular(np.ndarray):
    """An array that refuses values."""

    def __setitem__(self, key, value):
        if np.any(np.asarray(value) == 3):
            raise RuntimeError("no 3")
        super().__setitem__(key, value)


def test_variables_and_arrays_that_refuse_a_value_change_nothing(tmp_path):
    plain = an_embedding(strategy=False)
    plain.build()
    variable = next(table.name for table in plain.tables)
    for name, value in ("particular", np.zeros(2).view(Particular)), ("read_only", an_embedding()):
        if name == "read_only":
            value.build(2)
            value = value.sharded_variable(variable)
            assert not value.assignable
        before = np.array(value)
        run = tmp_path / name
        path = tpu.Checkpoint(array=np.full(2, 3.0), late=np.full_like(before, 3)).save(run)
        checkpoint = tpu.Checkpoint(array=np.zeros(2), late=value)
        with pytest.raises(RuntimeError):
            checkpoint.restore(path)
        assert checkpoint.array.tolist() == [0, 0] and np.array_equal(np.array(value), before)


def test_tables_that_cannot_be_read_change_no_object(tmp_path):
    path = tpu.Checkpoint(**objects(3.0)).save(tmp_path / "run")
    file = max((tmp_path / "run").rglob("*user*.safetensors"), key=lambda one: one.stat().st_size)
    whole = file.read_bytes()
    file.write_bytes(whole[:-3] + bytes([whole[-3] ^ 1]) + whole[-2:])
    checkpoint = tpu.Checkpoint(**objects(0.0))
    before = contents(checkpoint)
    with pytest.raises((OSError, ValueError)):
        checkpoint.restore(path)
    assert contents(checkpoint) == before


def test_values_of_tuples_are_replaced(tmp_path):
    import collections
    Pair = collections.namedtuple("Pair", "a b")
    path = tpu.Checkpoint(c=(1, 2.5), pair=Pair("x", [1, (np.float32(7), None)])).save(tmp_path / "run")
    fresh = tpu.Checkpoint(c=(0, 0.0), pair=Pair("", [0, (np.float32(0), None)]))
    fresh.restore(path).assert_consumed()
    assert fresh.c == (1, 2.5) and fresh.pair == Pair("x", [1, (np.float32(7), None)]) and type(fresh.pair.b[1][0]) is np.float32


@pytest.mark.parametrize("old, text", [
    (np.zeros(3, np.int32), "'b' is of int32, the checkpoint has float64"), (np.zeros(()), r"'b' has shape \(\), the checkpoint has \(3,\)"),
    (5, "'b' is a number, the checkpoint has an array"), (None, "'b' is None, the checkpoint has an array"),
    (et.Variable([0.0, 0, 0]), "'b' is of float32, the checkpoint has float64")])
def test_every_place_is_compared_before_anything_changes(tmp_path, old, text):
    embedding = an_embedding()
    train(embedding)
    path = tpu.Checkpoint(embedding=embedding, a=1, b=np.ones(3), c=np.ones(2)).save(tmp_path / "run")
    fresh, c = an_embedding(), np.zeros(2)
    checkpoint = tpu.Checkpoint(embedding=fresh, a=0, b=old, c=c)
    with pytest.raises(ValueError, match=text):
        checkpoint.restore(path)
    assert not fresh.built and checkpoint.a == 0 and c.tolist() == [0, 0]


@pytest.mark.parametrize("old, new", [(1, "a"), ("a", 1), (True, 1), (1, True), (1.5, "1.5"), (np.ones(1), 2)])
def test_kinds_are_compared(tmp_path, old, new):
    path = tpu.Checkpoint(x=new).save(tmp_path / "run")
    checkpoint = tpu.Checkpoint(x=old)
    with pytest.raises(ValueError, match="'x' is an? .*, the checkpoint has"):
        checkpoint.restore(path)
    assert checkpoint.x is old


def test_numbers_and_none_are_replaced_by_plain_values(tmp_path):
    path = tpu.Checkpoint(rate=0.5, best=2.0, nothing=None).save(tmp_path / "run")
    checkpoint = tpu.Checkpoint(rate=1, best=None, nothing=3)
    checkpoint.restore(path)
    assert (checkpoint.rate, checkpoint.best, checkpoint.nothing) == (0.5, 2.0, None)


def test_numbers_may_be_infinite_or_nan(tmp_path):
    """As those of a scheduler that has not seen a loss yet."""
    path = tpu.Checkpoint(best=math.inf, rates=(-math.inf, 1), worst=math.nan, step=2).save(tmp_path / "run")
    checkpoint = tpu.Checkpoint(best=0.0, rates=(0.0, 0), worst=0.0, step=0)
    checkpoint.restore(path).assert_consumed()
    assert (checkpoint.best, checkpoint.rates, checkpoint.step) == (math.inf, (-math.inf, 1), 2) and math.isnan(checkpoint.worst)


def id_map(*keys):
    builder = et.IdMapBuilder("string")
    builder.add(list(keys))
    return builder.build()


def test_id_maps_are_saved_with_an_embedding(tmp_path):
    embedding = an_embedding()
    train(embedding)
    path = tpu.Checkpoint(embedding=embedding, keys={"user": id_map("a", "b")}).save(tmp_path / "run")
    fresh = tpu.Checkpoint(embedding=an_embedding(), keys={"user": id_map("c")})
    fresh.restore(path).assert_consumed()
    assert fresh.keys["user"] == id_map("a", "b")
    with pytest.raises(TypeError, match="'keys': an IdMap is saved with an embedding"):
        tpu.Checkpoint(keys=id_map("a")).save(tmp_path / "other")
    assert not (tmp_path / "other").exists()


class Frozen:
    """An object whose attributes cannot be replaced."""

    def __init__(self, keys, kernel):
        self.__dict__.update(keys=keys, kernel=kernel)

    def __setattr__(self, name, value):
        raise AttributeError(f"{name} is frozen")


def test_an_id_map_that_cannot_be_replaced_is_in_the_way_of_a_saved_one_alone(tmp_path):
    def frozen(value):
        return Frozen(id_map("c"), np.full(2, value))

    embedding = an_embedding()
    train(embedding)
    path = tpu.Checkpoint(embedding=embedding, model={"kernel": np.ones(2)}, keys=id_map("a")).save(tmp_path / "without")
    checkpoint = tpu.Checkpoint(embedding=an_embedding(), model=frozen(0.0), keys=id_map("b"))
    status = checkpoint.restore(path)
    assert status.missing == ["model/keys"] and checkpoint.model.kernel.tolist() == [1, 1]
    assert checkpoint.keys == id_map("a") and checkpoint.model.keys == id_map("c")

    path = tpu.Checkpoint(embedding=embedding, model=frozen(1.0)).save(tmp_path / "with")
    checkpoint = tpu.Checkpoint(embedding=an_embedding(), model=frozen(0.0))
    with pytest.raises(AttributeError, match="keys is frozen"):
        checkpoint.restore(path)
    assert checkpoint.model.kernel.tolist() == [0, 0] and not checkpoint.embedding.built

    path = tpu.Checkpoint(model={"kernel": np.ones(2)}).save(tmp_path / "alone")
    checkpoint = tpu.Checkpoint(model=frozen(0.0))
    assert checkpoint.restore(path).missing == ["model/keys"] and checkpoint.model.kernel.tolist() == [1, 1]


def test_what_is_saved_nowhere_restores_nothing(tmp_path):
    kernel = np.ones(3)
    checkpoint = tpu.Checkpoint(kernel=kernel)
    status = checkpoint.restore(tpu.latest_checkpoint(tmp_path / "run"))
    assert status.expect_partial() is status and kernel.tolist() == [1.0, 1.0, 1.0] and status.step is None
    for check in (status.assert_consumed, status.assert_existing_objects_matched, status.assert_nontrivial_match):
        with pytest.raises(AssertionError, match="no checkpoint was given"):
            check()


def test_an_object_without_a_name_is_the_root(tmp_path):
    saved = tpu.Checkpoint({"kernel": np.array([1.0, 2.0])}, bias=3).save(tmp_path / "run")
    model = {"kernel": np.zeros(2)}
    tpu.Checkpoint(model, bias=0).restore(saved).assert_consumed()
    assert model["kernel"].tolist() == [1.0, 2.0]


def test_a_manager_keeps_the_newest_steps(tmp_path):
    model, began = {"kernel": np.zeros(2)}, []
    manager = tpu.CheckpointManager(tpu.Checkpoint(model=model), tmp_path / "run", 2, init_fn=lambda: began.append(1))
    assert (manager.latest_checkpoint, manager.checkpoints, manager.restore_or_initialize(), began) == (None, [], None, [1])
    paths = []
    for step in range(3):
        model["kernel"][:] = step
        paths.append(manager.save())
    assert manager.checkpoints == paths[1:] and manager.latest_checkpoint == paths[2]
    assert manager.directory == str(tmp_path / "run") and manager.checkpoint.model is model
    other = {"kernel": np.zeros(2)}
    again = tpu.CheckpointManager(tpu.Checkpoint(model=other), str(tmp_path / "run"), max_to_keep=None)
    assert again.restore_or_initialize() == paths[2] and other["kernel"].tolist() == [2.0, 2.0]
    again.save()
    assert len(again.checkpoints) == 3


def test_a_manager_of_an_embedding(tmp_path):
    strategy = tpu.TPUStrategy(threads=1)
    with strategy.scope():
        embedding = tpu.TPUEmbedding(tpu.FeatureConfig(tpu.TableConfig(8, 4, name="films")), tpu.SGD(0.1))
    manager = tpu.CheckpointManager(tpu.Checkpoint(embedding=embedding), tmp_path / "run", max_to_keep=1)
    embedding.build(2)
    for _ in range(2):
        embedding.enqueue(np.array([1, 2]))
        embedding.apply_gradients(embedding.dequeue())
        manager.save()
    assert [path[-3:] for path in manager.checkpoints] == ["002"]
    embedding.assign_step(0)  # another run begins below the step that is kept
    embedding.enqueue(np.array([1, 2]))
    embedding.apply_gradients(embedding.dequeue())
    saved = manager.save()
    assert [str(path) for path in manager.checkpoints] == [str(saved), str(tmp_path / "run" / "step_000000000002")]


@pytest.mark.parametrize("arguments, kind, text", [
    ((3, "run", None), TypeError, "checkpoint must be a Checkpoint, got int"), ((None, None, None), TypeError, "must be a Checkpoint"),
    ((tpu.Checkpoint(a=1), 3, None), TypeError, "directory must be a path, got int"),
    ((tpu.Checkpoint(a=1), "run", 0), ValueError, "max_to_keep must be >= 1, or None for all, got 0"),
    ((tpu.Checkpoint(a=1), "run", 1, 3), TypeError, "init_fn must be a function or None, got int")])
def test_a_manager_checks_its_arguments(arguments, kind, text):
    with pytest.raises(kind, match=text):
        tpu.CheckpointManager(*arguments)
