"""tpu_embedding's tables and features: when initializers are called, with what, and what configurations refuse."""

import collections
import copy
import pickle
import threading

import numpy as np
import pytest

import embertable as et
from embertable import tpu_embedding as tpu


def strategy(**options):
    return tpu.TPUStrategy(threads=2, timeout=2.0, **options)


def counting(shape, dtype=np.float32):
    return np.arange(np.prod(shape)).reshape(shape).astype(dtype)


class Asked:
    """An initializer that knows its shard, and notes how it was called."""

    def __init__(self):
        self.calls = []

    def __call__(self, shape, dtype=None, shard_info=None):
        self.calls.append((tuple(shape), shard_info))
        rows = np.arange(shard_info.offset[0], shard_info.offset[0] + shard_info.shape[0])
        return np.repeat(rows[:, None], shard_info.shape[1], 1).astype(dtype)


def test_tables_are_a_class_and_keep_what_was_given():
    initializer, optimizer = (lambda shape, dtype: np.zeros(shape, dtype)), tpu.SGD(0.5)
    table = tpu.TableConfig(8, 4, initializer, optimizer, "sum", "films", layout="any")
    assert isinstance(table, tpu.TableConfig) and isinstance(table, et.TableConfig)
    assert table.initializer is initializer and table.optimizer is optimizer and table.combiner == "sum"
    assert {table: 1}[table] == 1 and tpu.TableConfig(8, 4) != tpu.TableConfig(8, 4)


def test_an_initializer_is_called_when_tables_are_made_and_once():
    calls = []

    def rows(shape, dtype):
        calls.append((tuple(shape), np.dtype(dtype), threading.current_thread().name))
        return counting(shape, dtype)

    table = tpu.TableConfig(60_000, 4, rows, name="t")  # several pieces of work
    embedding = tpu.TPUEmbedding(tpu.FeatureConfig(table), None)
    assert calls == []
    found = embedding.embedding_tables[table]
    assert [call[:2] for call in calls] == [((60_000, 4), np.float32)]
    assert np.array_equal(found, counting((60_000, 4)))
    assert embedding._row_sources[0]._blocks == {}  # the values are not kept


@pytest.mark.parametrize("hosts", [1, 2, 3])
def test_one_that_takes_shard_info_is_called_for_the_rows_of_each_host(hosts):
    asked = Asked()
    with strategy(hosts=hosts).scope():
        embedding = tpu.TPUEmbedding(tpu.FeatureConfig(tpu.TableConfig(40_001, 2, asked, name="t")), tpu.SGD(0.1))
    embedding.build(per_replica_batch_size=hosts)
    blocks = sorted((info.offset[0], info.shape[0]) for _, info in asked.calls)
    sizes = [40_001 // hosts + (h < 40_001 % hosts) for h in range(hosts)]
    assert blocks == [(sum(sizes[:h]), sizes[h]) for h in range(hosts)]
    assert {shape for shape, _ in asked.calls} == {(40_001, 2)}
    assert np.array_equal(embedding.read_rows("t", np.arange(40_001))[:, 0], np.arange(40_001))


def test_first_values_do_not_depend_on_engines_before():
    """The block of a row is that of the engine's own hosts, whatever was made of the same table."""
    def first(shape, dtype, shard_info):
        return np.full(shard_info.shape, shard_info.offset[0], dtype)

    feature = tpu.FeatureConfig(tpu.TableConfig(40_000, 2, first, name="t"))
    read = lambda engine: (engine.build(per_replica_batch_size=6), engine.read_rows("t", [0, 39_999])[:, 0].tolist())[1]
    made = {
        "hosts": lambda hosts: read(et.Embedding(feature, tpu.SGD(0.1), strategy(hosts=hosts))),
        "plain": lambda _: read(et.Embedding(feature, tpu.SGD(0.1))),
        "direct": lambda _: et.DirectEmbedding(feature, tpu.SGD(0.1), strategy(hosts=2)).read_rows("t", [0, 39_999])[:, 0].tolist(),
        "serving": lambda _: tpu.TPUEmbeddingForServing(feature)(np.array([0, 39_999]))[:, 0].tolist(),
    }
    last_block = {2: 20_000, 3: 26_667}  # 40,000 rows are 13,334 and 13,333 and 13,333
    for _ in range(2):
        for hosts in (2, 3):
            with strategy(hosts=hosts).scope():
                assert read(tpu.TPUEmbedding(feature, tpu.SGD(0.1))) == [0, last_block[hosts]]
            for name, make in made.items():
                assert make(hosts) == [0, last_block[hosts] if name == "hosts" else 0], name


@pytest.mark.parametrize("whole", [{"replicated": True}, {"sharding": "mod"}])
def test_tables_without_blocks_are_one_for_shard_info(whole):
    asked = Asked()
    table = tpu.TableConfig(9, 2, asked, name="t", replicated="replicated" in whole)
    with strategy(hosts=2, sharding=whole.get("sharding", "div")).scope():
        embedding = tpu.TPUEmbedding(tpu.FeatureConfig(table), tpu.SGD(0.1))
    embedding.build(per_replica_batch_size=2)
    assert [info for _, info in asked.calls] == [tpu.ShardInfo((9, 2), (0, 0))]
    assert np.array_equal(embedding.read_rows("t", np.arange(9))[:, 0], np.arange(9))


@pytest.mark.parametrize("row_type", ["float32", "bfloat16"])
def test_copies_of_a_replicated_table_are_equal(row_type):
    random = np.random.default_rng(1)
    table = et.TableConfig(40_000, 2, initializer=et.Initializer.function(lambda rows: random.random((rows.rows, rows.dim))), name="t",
                           replicated=True, row_type=row_type)
    engine = et.Embedding(et.FeatureConfig(table), et.SGD(0.1), strategy(hosts=2))
    ids = np.arange(0, 40_000, 7)
    engine.enqueue(et.PerReplica([ids, ids]))
    first, second = engine.dequeue()
    assert np.array_equal(first, second) and np.unique(first).size > 100


def test_rows_by_modulo_are_asked_for_as_a_whole():
    with tpu.TPUStrategy(hosts=2, sharding="mod", threads=1).scope():
        embedding = tpu.TPUEmbedding(tpu.FeatureConfig(tpu.TableConfig(9, 2, counting, name="t")), tpu.SGD(0.1))
    embedding.build(per_replica_batch_size=2)
    assert np.array_equal(embedding.read_rows("t", np.arange(9)), counting((9, 2)))


def test_what_an_initializer_returns_must_have_the_shape():
    table = tpu.TableConfig(8, 4, lambda shape, dtype: np.zeros((2, 2), dtype), name="t")
    with pytest.raises(ValueError, match=r"\(8, 4\), got \(2, 2\)"):
        tpu.TPUEmbedding(tpu.FeatureConfig(table), None).build()
    with pytest.raises(ValueError, match="callable, got int"):
        tpu.TableConfig(8, 4, 5)


def test_names_are_compared_before_an_initializer_is_called():
    def bad(shape, dtype):
        raise AssertionError("called")

    tables = [tpu.TableConfig(8, 4, bad, name="same") for _ in range(2)]
    with pytest.raises(ValueError, match="same"):
        tpu.TPUEmbedding([tpu.FeatureConfig(table) for table in tables], tpu.SGD(0.1))


def test_an_optimizer_that_is_none_is_refused_by_the_embedding():
    table = tpu.TableConfig(8, 4, optimizer="sgd", name="films")
    with strategy().scope(), pytest.raises(ValueError, match="'films'.*str"):
        tpu.TPUEmbedding(tpu.FeatureConfig(table), tpu.SGD(0.1))
    with pytest.raises(TypeError, match="optimizer"):
        et.TableConfig(8, 4, optimizer="sgd")


def test_custom_combiners_are_kept_and_not_trained():
    combiner = tpu.CustomCombiner(lambda rows, weights: rows[0], max_valency=3, num_weights=2, initializer=np.zeros)
    table = tpu.TableConfig(8, 4, combiner=combiner, name="t")
    assert table.combiner is combiner and combiner.slot_names() == ["custom_combiner_variables"]
    assert combiner == copy.copy(combiner) and "max_valency=3" in repr(combiner)
    with pytest.raises(NotImplementedError, match="'t'"):
        tpu.TPUEmbedding(tpu.FeatureConfig(table), tpu.SGD(0.1))
    for arguments, text in (((5, 3, 0), "callable"), ((len, 3, -1), ">= 0"), ((len, 3, 1), "initializer")):
        with pytest.raises(ValueError, match=text):
            tpu.CustomCombiner(*arguments)


def test_quantization_reads_the_nearest_of_the_buckets():
    """Five buckets from 0 to 4: 1.4 is read as 1, 2.5 as 3, -7 as 0, 9 as 4."""
    quantization = tpu.QuantizationConfig(num_buckets=5, lower=0.0, upper=4.0)
    table = tpu.TableConfig(1, 4, lambda shape, dtype: np.array([[1.4, 2.5, -7, 9]], dtype), name="t",
                            quantization_config=quantization)
    with strategy().scope():
        embedding = tpu.TPUEmbedding(tpu.FeatureConfig(table), tpu.SGD(0.1))
    embedding.enqueue(np.array([0]), training=False)
    assert embedding.dequeue().tolist() == [[1, 3, 0, 4]]
    assert pickle.loads(pickle.dumps(quantization)) == quantization == tpu.QuantizationConfig(5, 0, 4)
    assert (quantization.num_buckets, quantization.lower, quantization.upper) == (5, 0.0, 4.0)
    with pytest.raises(ValueError, match="num_buckets"):
        tpu.QuantizationConfig(1, 0, 4)
    with pytest.raises(TypeError, match="quantization_config"):
        tpu.TableConfig(1, 4, quantization_config=5)


def test_features_may_be_changed_and_stay_allowed():
    feature = tpu.FeatureConfig(tpu.TableConfig(8, 4, name="t"))
    feature.max_sequence_length, feature.output_shape, feature.name = 3, (2, None), "watched"
    feature.validate_weights_and_indices = False
    assert (feature.max_sequence_length, feature.output_shape, feature.name) == (3, (2, None), "watched")
    feature.name = feature.output_shape = None
    assert feature.output_shape is None and not feature.validate_weights_and_indices
    with pytest.raises(ValueError, match="max_sequence_length"):
        feature.max_sequence_length = -1
    with pytest.raises(TypeError, match="TableConfig"):
        feature.table = 5
    assert feature.max_sequence_length == 3
    embedding = tpu.TPUEmbedding(feature, tpu.SGD(0.1))
    feature.table = tpu.TableConfig(2, 2, name="other")
    assert [table.name for table in embedding.tables] == ["t"]


def test_configurations_copy_and_pickle():
    table = tpu.TableConfig(8, 4, counting, tpu.Adagrad(0.2), "sum", "t", tpu.QuantizationConfig(2, 0, 1))
    for made in (copy.copy(table), copy.deepcopy(table), pickle.loads(pickle.dumps(table))):
        assert isinstance(made, tpu.TableConfig) and made is not table
        assert made.initializer is counting and made.optimizer == table.optimizer and made.quantization_config == table.quantization_config
    features = {"a": tpu.FeatureConfig(table), "b": tpu.FeatureConfig(table)}
    again = pickle.loads(pickle.dumps(features))
    assert again["a"].table is again["b"].table


@pytest.mark.parametrize("name, called", [("films", "table 'films'"), (None, "a table of 8 x 4, which has no name")])
def test_messages_name_the_table(name, called):
    def refused(error, **changes):
        table = tpu.TableConfig(8, 4, name=name, **changes)
        with pytest.raises(error) as raised:
            tpu.TPUEmbedding(tpu.FeatureConfig(table), tpu.SGD(0.1)).build()
        return str(raised.value)

    wrong = refused(ValueError, initializer=lambda shape, dtype: np.zeros((1, 1)))
    assert wrong == f"{called}: what the initializer returns must have shape (8, 4), got (1, 1)"
    assert refused(ValueError, optimizer=3) == f"{called}: optimizer must be an Optimizer, got int"
    combiner = tpu.CustomCombiner(len, max_valency=2, num_weights=0)
    assert refused(NotImplementedError, combiner=combiner).startswith(f"{called}: a custom combiner is for SparseCores")


Pair = collections.namedtuple("Pair", "left right")


def test_tables_are_those_of_any_containers():
    one, two = tpu.TableConfig(8, 4, optimizer="bad", name="one"), tpu.TableConfig(8, 4, name="two")
    with pytest.raises(ValueError, match="'one'"):
        tpu.TPUEmbedding(Pair([tpu.FeatureConfig(two)], {1: tpu.FeatureConfig(one)}), tpu.SGD(0.1))


@pytest.mark.parametrize("config, name", [(tpu.FeatureConfig(tpu.TableConfig(8, 4)), "max_sequence_len"), (tpu.TableConfig(8, 4), "vocab_size"),
                                          (tpu.Adagrad(0.1), "initial_accumulator"), (tpu.SGD(0.1), "lr")])
def test_a_misspelt_attribute_is_an_error(config, name):
    with pytest.raises(AttributeError, match=f"no (attribute )?'{name}'"):
        setattr(config, name, 3)


def test_a_row_id_initializer_counts_rows():
    table = tpu.TableConfig(3, 2, tpu.RowIdInitializer(offset=5), name="t")
    embedding = tpu.TPUEmbedding(tpu.FeatureConfig(table), tpu.SGD(0.1))
    assert embedding.embedding_tables[table].tolist() == [[5, 5], [6, 6], [7, 7]]
    assert repr(table.initializer) == "RowIdInitializer(offset=5)"


def test_a_per_replica_has_its_values():
    values = et.PerReplica([1, 2]).values
    assert values == (1, 2) and type(values) is tuple
