"""Errors have Python's classes, and those of a batch say where."""

import os

import numpy as np
import pytest

import embertable as et
from fixture import batch, engine, ragged, user


def test_classes():
    assert issubclass(et.DataError, ValueError) and issubclass(et.DataLossError, OSError)
    assert et.DataError.__module__ == et.DataLossError.__module__ == "embertable"
    assert et.DataError("mine").sample is None


def test_a_data_error_says_where():
    embedding = engine(2, feature_config={"user": {"friends": et.FeatureConfig(user())}})
    good, bad = ragged([[3], [0]]), ragged([[3], [0, 16, 1]])
    with pytest.raises(et.DataError, match="user/friends.*16") as raised:
        embedding.enqueue(et.PerReplica([{"user": {"friends": good}}, {"user": {"friends": bad}}]))
    error = raised.value
    assert (error.feature, error.replica, error.sample, error.position) == ("user/friends", 1, 1, 2)


def test_an_initializer_of_the_wrong_shape_names_its_table():
    function = et.Initializer.function(lambda rows: np.ones((9, 4)))
    for name, called in (("films", "table 'films'"), (None, "a table of 10 x 4")):
        feature = et.FeatureConfig(et.TableConfig(10, 4, function, name=name))
        for build in (engine(feature_config=feature).build, et.ServingEmbedding(feature).build):
            with pytest.raises(ValueError, match=rf"^{called}: what an initializer returns must have shape \(10, 4\), got \(9, 4\)"):
                build(1) if build.__self__.__class__ is et.Embedding else build()


@pytest.mark.parametrize("json, kind, text", [({"loss": np.float32(1)}, TypeError, "float32 is not JSON serializable"),
                                              ({"loss": np.inf}, ValueError, "not JSON compliant")])
def test_a_state_that_json_does_not_write_says_so(tmp_path, json, kind, text):
    embedding = et.Embedding(et.FeatureConfig(user()))
    embedding.build()
    with pytest.raises(kind, match=f"CallerState: json must be what the json module writes: .*{text}"):
        embedding.save(tmp_path / "run", et.CallerState(json))


def test_a_field_that_does_not_apply_is_none():
    with pytest.raises(et.DataError) as raised:
        engine().enqueue((et.RaggedIds([0], [0, 2]),) + batch()[1:])
    assert raised.value.feature == "0" and raised.value.sample is None


def test_the_object_is_as_it_was():
    embedding = engine()
    with pytest.raises(et.DataError):
        embedding.enqueue((ragged([[8], [0]]),) + batch()[1:])
    assert not embedding.built
    embedding.enqueue(batch())
    assert embedding.dequeue()[0].shape == (2, 4)


@pytest.mark.parametrize("options, text", [({"out_of_range": "ignore"}, "ignore"), ({"queue_capacity": 0}, "0"),
                                           ({"seed": -1}, "seed.*-1")])
def test_options_are_checked(options, text):
    with pytest.raises(ValueError, match=text):
        engine(**options)


def test_a_full_queue_raises():
    embedding = engine(queue_capacity=1)
    embedding.enqueue(batch(), name="first")
    with pytest.raises(RuntimeError, match="queue"):
        embedding.enqueue(batch())


def test_what_a_step_did():
    embedding = engine(optimizer=et.RowwiseAdagrad())
    embedding.enqueue(batch())
    activations = embedding.dequeue()
    embedding.apply_gradients(tuple(np.copy(a) for a in activations))
    videos, users = embedding.last_step.tables
    assert (videos.entries, videos.unique_rows, users.entries, users.unique_rows) == (6, 2, 4, 4)
    assert [(t.name, t.vocabulary_size, t.dim, t.combiner, [(s.name, s.row_wise) for s in t.slots])
            for t in embedding.tables] == [("video", 8, 4, "sum", [("accumulators", True)]),
                                           ("user", 16, 2, "mean", [("accumulators", True)])]
    assert {"video", "video/accumulators"} <= {entry.name for entry in embedding.memory()}


@pytest.mark.parametrize("call, error", [
    (lambda path: et.find_checkpoint(path), OSError),
    (lambda path: et.TensorBundleReader(path), OSError),
    (lambda path: et.import_tables(path, "/nowhere", "npy"), OSError),
])
def test_a_message_shows_bytes_that_are_no_utf8(call, error, tmp_path):
    (tmp_path / "file").touch()
    path = os.fsdecode(os.fsencode(tmp_path / "file") + b"/no\xffsuch")
    with pytest.raises(error, match=r"no\\xffsuch"):
        call(path)


def test_a_word2vec_file_in_latin_1_is_refused_with_its_words(tmp_path):
    (tmp_path / "words.txt").write_bytes("2 2\nMünchen 1 2\nZürich 1\n".encode("latin-1"))
    with pytest.raises(ValueError, match=r"words.txt"):
        et.import_tables(tmp_path / "words.txt", tmp_path / "run", "word2vec")


def test_a_damaged_bundle_is_data_loss_whatever_the_message_quotes(tmp_path):
    with et.TensorBundleWriter(tmp_path / "b") as writer:
        for i in range(20):
            writer.add(f"key/{i:03}", np.arange(4))
    index = (tmp_path / "b.index").read_bytes()
    for at in range(len(index)):
        (tmp_path / "b.index").write_bytes(index[:at] + bytes([index[at] ^ 0x80]) + index[at + 1:])
        try:
            reader = et.TensorBundleReader(tmp_path / "b")
            for key in reader:
                reader.describe(key)
        except (et.DataLossError, NotImplementedError):
            pass
    with pytest.raises(KeyError, match=r"\\xff"):
        et.TensorBundleReader(bundle_of(tmp_path, index))[os.fsdecode(b"\xff")]


def bundle_of(directory, index):
    (directory / "b.index").write_bytes(index)
    return directory / "b"


def test_a_word_that_is_no_choice_is_shown():
    with pytest.raises(ValueError, match=r"\\udcff"):
        et.TableConfig(1, 1, combiner="\udcff")
    with pytest.raises(ValueError, match=r"\\udcff"):
        et.Optimizer("sgd", 0.1, **{"\udcff": 1})
