"""Rules of the original's releases and calls: the batch-size revision, modes, layouts by table, recorded steps."""

import threading

import numpy as np
import pytest

import embertable as et
from fixture import (VIDEO_ROWS, accelerator, batch, batches, each, engine, features, loss_gradient, ragged, sparse,
                     train, video)


def release_24(replicas=1, **options):
    return engine(replicas, revision="batch_size", **options)


def test_the_batch_size_revision_builds_by_a_batch_size():
    embedding = release_24()
    with pytest.raises(ValueError, match="per_replica_batch_size"):
        embedding.build()
    embedding.build(3)
    assert embedding.output_shapes == ((3,), (3,), (3,))
    with pytest.raises(ValueError, match="3.*2|2.*3"):
        embedding.enqueue(batch())
    with pytest.raises(ValueError, match="revision must be 'output_shapes' or 'batch_size', got '2.4'"):
        engine(revision="2.4")


def test_one_batch_size_for_all_features_of_all_replicas():
    embedding = release_24(2)
    with pytest.raises(ValueError, match="2.*3|3.*2"):
        embedding.enqueue(et.PerReplica([batch(0), (ragged([[0]] * 3),) * 3]))
    with pytest.raises(ValueError, match="2.*3|3.*2"):
        embedding.enqueue((np.zeros(2, int), np.zeros(3, int), np.zeros(2, int)))
    embedding.enqueue(batches(2))
    assert len(embedding.dequeue()) == 2


def test_rank_zero_is_named():
    with pytest.raises(ValueError, match="feature '1'"):
        release_24().enqueue((np.zeros(2, int), np.int64(1), np.zeros(2, int)))


def test_sparse_and_ragged_do_not_mix_in_one_call():
    first, second, third = batch()
    with pytest.raises(ValueError, match="sparse.*ragged|ragged.*sparse"):
        release_24().enqueue((first, sparse([[0], [1]]), third))
    engine().enqueue((first, sparse([[0], [1]]), third))  # today's release


def test_the_batch_size_revision_trains_to_the_same_bits():
    one, other = release_24(2, optimizer=et.Adagrad(0.1)), engine(2, optimizer=et.Adagrad(0.1))
    for embedding in (one, other):
        for _ in range(2):
            train(embedding, batches(2), loss_gradient(2))
    assert one.digest() == other.digest()
    text = et.configuration_text(one.configuration())
    assert "batch_size_per_tensor_core: 2" in text and "num_features: 2" in text and "feature_descriptor" not in text


def test_the_lookup_of_the_batch_size_revision_has_no_sequences():
    tables = {"a": et.FeatureConfig(video(), max_sequence_length=2)}
    rows = {tables["a"].table: VIDEO_ROWS}
    with pytest.raises(ValueError, match="'a'"):
        et.serving_embedding_lookup({"a": ragged([[1, 2]])}, None, rows, tables, revision="batch_size")
    plain = {"a": et.FeatureConfig(video())}
    got = et.serving_embedding_lookup({"a": ragged([[1, 2]])}, None, {plain["a"].table: VIDEO_ROWS}, plain,
                                      revision="batch_size")
    assert got["a"].tolist() == [(VIDEO_ROWS[1] + VIDEO_ROWS[2]).tolist()]


def test_the_configuration_is_logged_line_by_line_when_built():
    lines = []
    embedding = engine(log_configuration=lines.append)
    assert lines == []
    embedding.build(2)
    assert lines and "\n".join(lines).strip() == et.configuration_text(embedding.configuration()).strip()
    with pytest.raises(TypeError, match="log_configuration must be callable"):
        engine(log_configuration=3)


def test_tables_say_who_trains_them():
    assert not engine().tables[0].trainable and not engine(optimizer=et.Adagrad(0.1)).tables[0].slots[0].trainable
    assert et.Embedding(features(), et.SGD(0.1)).tables[0].trainable


# ---- tensors of tables ----------------------------------------------------------------------------------------------


def test_a_layout_puts_features_sample_by_sample():
    layout = et.InterleavedLayout({"t": 2, "u": 1}, {"a": "t", "b": ("t", 2), "c": "u"}, 2)
    assert layout.batch_size == 2 and layout.features == ["a", "b", "c"] and layout.tables == {"t": ["a", "b"], "u": ["c"]}
    assert layout.table_shape("t") == (6, 2) and layout.feature_shape("b") == (2, 2, 2) and layout.feature_shape("c") == (2, 1)
    a, b = np.float32([[1, 2], [3, 4]]), np.float32([[[5, 6], [7, 8]], [[9, 10], [11, 12]]])
    tables = et.interleave(layout, {"a": a, "b": b, "c": None})
    assert tables["t"].tolist() == [[1, 2], [5, 6], [7, 8], [3, 4], [9, 10], [11, 12]]
    assert tables["u"].tolist() == [[0], [0]]
    apart = et.deinterleave(layout, tables)
    assert apart["a"].tolist() == a.tolist() and apart["b"].tolist() == b.tolist() and apart["c"].tolist() == [[0], [0]]
    assert et.InterleavedLayout.sorted_by_name({"t": 2}, {"b": "t", "a": "t"}, 1).features == ["a", "b"]
    assert repr(layout) == "InterleavedLayout({'t': ['a', 'b'], 'u': ['c']}, batch_size=2)"


def test_the_layout_of_an_engine_names_features_by_their_paths():
    embedding = engine()
    with pytest.raises(RuntimeError):
        et.interleaved_layout(embedding)
    embedding.enqueue(batch())
    activations = embedding.dequeue()
    layout = et.interleaved_layout(embedding)
    assert layout.tables == {"video": ["0", "1"], "user": ["2"]}
    tables = et.interleave(layout, activations)
    assert tables["video"].tolist() == [activations[i][s].tolist() for s in range(2) for i in range(2)]
    embedding.apply_gradients(tuple(et.deinterleave(layout, tables).values()))


@pytest.mark.parametrize("call, error, text", [
    (lambda l: et.interleave(l, {"a": np.ones((2, 2))}), ValueError, "'b'"),
    (lambda l: et.interleave(l, {"a": None, "b": None, "x": None}), KeyError, "'x'"),
    (lambda l: et.interleave(l, {"a": np.ones((2, 3)), "b": None}), ValueError, "'a'"),
    (lambda l: et.interleave(l, {"a": None, "": {"a": None}, "b": None}), ValueError, "feature 'a' must have one array"),
    (lambda l: et.deinterleave(l, {"t": np.ones((4, 3))}), ValueError, "'t'"),
    (lambda l: et.deinterleave(l, {}), ValueError, "'t'"),
    (lambda l: et.deinterleave(l, {"x": np.ones((4, 2))}), KeyError, "'x'"),
    (lambda l: et.deinterleave(l, [1]), TypeError, "dict"),
    (lambda l: l.table_shape("x"), KeyError, "'x'"),
    (lambda l: et.InterleavedLayout({"t": 2}, {"a": "u"}, 2), ValueError, "u"),
    (lambda l: et.InterleavedLayout({"t": 0}, {"a": "t"}, 2), ValueError, "t"),
    (lambda l: et.InterleavedLayout({"t": 2}, {}, 2), ValueError, "t"),
    (lambda l: et.InterleavedLayout([("t", 2)], {"a": "t"}, 2), TypeError, "tables must be a dict"),
])
def test_layouts_say_what_is_wrong(call, error, text):
    with pytest.raises(error, match=text):
        call(et.InterleavedLayout({"t": 2}, {"a": "t", "b": "t"}, 2))


# ---- recorded steps -------------------------------------------------------------------------------------------------


def recorded(seen, training=True):
    step = et.StepDescriptor()
    step.enqueue(batch, tag="x")
    step.dequeue(seen.append, tag="x")
    if training:
        step.apply_gradients(lambda: each(seen[-1], loss_gradient(1)), tag="x")
    return step


def test_a_recorded_step_is_that_of_the_calls():
    seen, embedding, reference = [], engine(), engine()
    step = recorded(seen)
    assert step.trains("x") and not step.trains("y")
    for _ in range(3):
        step.run(embedding)
        train(reference, batch(), loss_gradient(1))
    assert embedding.step == 3 and embedding.digest() == reference.digest() and len(seen) == 3


def test_a_tag_without_gradients_is_inference():
    seen, embedding = [], engine()
    step = recorded(seen, training=False)
    step.run(embedding)
    step.run(embedding)  # nothing awaits gradients
    assert embedding.step == 0 and seen[0][0].tolist() == seen[1][0].tolist()


def test_a_recorded_step_runs_for_a_replica():
    embedding, seen = engine(2), [[], []]

    def run(index):
        step = et.StepDescriptor()
        step.enqueue(lambda: batch(index))
        step.dequeue(seen[index].append)
        step.apply_gradients(lambda: each(seen[index][-1], loss_gradient(2)))
        step.run(embedding.replica(index))

    threads = [threading.Thread(target=run, args=(i,)) for i in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    reference = engine(2)
    train(reference, batches(2), loss_gradient(2))
    assert embedding.digest() == reference.digest()


def test_weights_and_functions_that_call_the_engine():
    table = et.TableConfig(4, 1, et.Initializer.row_id(), combiner="sum", name="t")
    embedding, seen = et.Embedding(et.FeatureConfig(table), et.SGD(1), accelerator()), []
    step = et.StepDescriptor()
    step.enqueue(lambda: ragged([[1, 2]]), weights=lambda: et.RaggedWeights([2.0, 3.0]), training=False)
    step.dequeue(lambda activations: seen.append((activations.tolist(), embedding.read_rows("t", [3]).tolist())))
    step.run(embedding)
    assert seen == [([[8]], [[3]])]


@pytest.mark.parametrize("calls, text", [
    ([("enqueue", "a")], "a"),
    ([("dequeue", "a"), ("enqueue", "a")], "a"),
    ([("enqueue", "a"), ("dequeue", "a"), ("dequeue", "a")], "a"),
    ([("enqueue", "a"), ("enqueue", "b"), ("dequeue", "b"), ("dequeue", "a")], "order|a|b"),
])
def test_recorded_steps_are_checked_before_they_run(calls, text):
    step, embedding = et.StepDescriptor(), engine()
    for call, tag in calls:
        getattr(step, call)(batch, tag=tag)
    for check in (step.check, lambda: step.run(embedding)):
        with pytest.raises(RuntimeError, match=text):
            check()
    assert not embedding.built
    with pytest.raises(TypeError, match="features must be callable"):
        step.enqueue(batch())


# ---- variables ------------------------------------------------------------------------------------------------------


def test_a_partitioner_of_ones_own_derives_from_the_base():
    class Rows(et.Partitioner):
        def __call__(self, shape, dtype, axis=0):
            return [3 if i == axis else 1 for i in range(len(shape))]

    creator = et.VariableCreator(storage_nodes=2, variable_partitioner=Rows())
    made = creator.create(np.zeros((7, 2), np.float32), "v")
    assert [part.shape for part in made.variable] == [(3, 2), (2, 2), (2, 2)] and made.nodes == [0, 1, 0]
    with pytest.raises(NotImplementedError, match="__call__"):
        et.Partitioner()((3, 2), np.float32)
    for one in (et.FixedShardsPartitioner(2), et.MinSizePartitioner(), et.MaxSizePartitioner(8)):
        assert isinstance(one, et.Partitioner)


def test_structures_of_sharded_variables_are_compared():
    def made(*sizes, dtype=np.float32):
        return et.ShardedVariable([et.Variable(np.zeros((size, 2), dtype)) for size in sizes])

    assert made(2, 1).same_structure(made(2, 1))
    assert not made(2, 1).same_structure(made(1, 2)) and not made(3).same_structure(made(2, 1))
    assert not made(2, 1).same_structure(made(2, 1, dtype=np.float64))
    with pytest.raises(TypeError):
        made(2).same_structure(np.zeros((2, 2)))
