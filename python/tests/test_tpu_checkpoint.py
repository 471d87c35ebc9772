"""Checkpoint(model=..., embedding=...): everything in one commit, and what is missing said."""

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
    assert path == str(tmp_path / "run" / "step_1") or "1" in path.rsplit("/", 1)[1]
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
    assert again.save_counter == 2 and tpu.latest_checkpoint(tmp_path / "run").endswith("2")


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
    import sys
    import types
    sys.modules.setdefault("torch", types.ModuleType("torch"))
    sys.modules["torch"].from_numpy = lambda array: type("T", (), {"to": staticmethod(lambda dtype: array)})()
    try:
        tpu.Checkpoint(optimizer=module, model=model).restore(path).assert_consumed()
    finally:
        del sys.modules["torch"]
    assert module.loads == 1 and module.state["weight"].tolist() == [3, 3]
    assert module.state["state"][0] == {"step": 3.0, "betas": (3.0, 0.5)}
    assert model.weights[1].tolist() == [[4, 4]]
