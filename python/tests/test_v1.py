"""The first TPUEmbedding API: numbers by hand, and the bits of an engine."""

import copy
import pickle
import threading

import numpy as np
import pytest

import embertable as et
from embertable import v1

COUNTING = et.Initializer.row_id()


def one_feature(cores=1, mode=v1.TRAINING, rows=4, table=None, **options):
    """A table whose row r starts as r, one feature, two samples a core."""
    if mode == v1.TRAINING:
        options = {"optimization_parameters": v1.StochasticGradientDescentParameters(0.5), **options}
    return v1.TPUEmbedding({"t": table or v1.TableConfig(rows, 1, COUNTING, combiner="sum")}, {"f": v1.FeatureConfig("t")},
                           2 * cores, mode, device_config=v1.DeviceConfig(1, cores), **options)


def enqueue(embedding, *cores):
    embedding.enqueue([{"f": v1.EnqueueData(ids)} for ids in cores])


def rows_of(embedding, rows=4):
    return embedding.read_rows("t", np.arange(rows))[:, 0].tolist()


def test_a_step_of_two_cores():
    embedding = one_feature(2)
    enqueue(embedding, [1, 3], [3, 3])
    activations = embedding.get_activations()
    assert [core["f"].tolist() for core in activations] == [[[1], [3]], [[3], [3]]]
    embedding.send_gradients([{"f": [[2.0], [4.0]]}, {"f": None}])
    assert rows_of(embedding) == [0, 0, 2, 1] and embedding.step == 1


def test_data_by_samples_positions_and_weights():
    embedding = one_feature()
    sparse = v1.EnqueueData([3, 1, 2], [[0, 1], [1, 0], [0, 0]], [2.0, 1.0, 4.0])
    ragged = v1.RaggedEnqueueData([3, 1, 2], [0, 2, 3], [2.0, 1.0, 4.0])
    for data, want in ((sparse, [[3 * 2 + 2 * 4], [1]]), (ragged, [[3 * 2 + 1], [2 * 4]])):
        embedding.enqueue([{"f": data}], v1.INFERENCE)
        assert embedding.get_activations()[0]["f"].tolist() == want


def test_data_of_other_classes():
    embedding = one_feature(mode=v1.INFERENCE)
    embedding.enqueue([{"f": v1.EnqueueData.from_sparse_tensor(et.SparseIds([[0, 0], [1, 0]], [3, 2], (2, 1)))}])
    assert embedding.get_activations()[0]["f"].tolist() == [[3], [2]]
    ragged = et.RaggedIds.from_rows([[3, 2], []])
    embedding.enqueue([{"f": v1.RaggedEnqueueData.from_ragged_tensor(ragged, et.RaggedWeights([1.0, 0.5]))}])
    assert embedding.get_activations()[0]["f"].tolist() == [[4], [0]]


def test_sequences_and_tables_by_name():
    tables = {"b": v1.TableConfig(8, 1, COUNTING), "a": v1.TableConfig(4, 2, COUNTING)}
    features = {"z": v1.FeatureConfig("b"), "y": v1.FeatureConfig("b", max_sequence_length=2), "x": v1.FeatureConfig("a")}
    embedding = v1.TPUEmbedding(tables, features, 2, v1.INFERENCE)
    assert list(embedding.table_to_config_dict) == ["a", "b"] and list(embedding.feature_to_config_dict) == ["x", "y", "z"]
    assert embedding.table_to_features_dict == embedding.layout.tables == {"a": ["x"], "b": ["y", "z"]}
    ids = {"x": v1.EnqueueData([1, 2]), "y": v1.EnqueueData([5, 6, 7], [[0, 0], [0, 1], [1, 0]]), "z": v1.EnqueueData([3, 4])}
    embedding.enqueue([ids])
    activations, = embedding.get_activations()
    assert list(activations) == ["x", "y", "z"]
    assert activations["y"].tolist() == [[[5], [6]], [[7], [0]]]
    by_table = et.interleave(embedding.layout, activations)
    assert by_table["b"][:, 0].tolist() == [5, 6, 3, 7, 0, 4]
    assert {k: v.tolist() for k, v in et.deinterleave(embedding.layout, by_table).items()} == \
        {k: v.tolist() for k, v in activations.items()}


def test_gradients_by_table_are_those_by_feature():
    embeddings = []
    for by_table in (False, True):
        embedding = v1.TPUEmbedding({"t": v1.TableConfig(4, 2, COUNTING)}, {"f": v1.FeatureConfig("t"), "g": v1.FeatureConfig("t")},
                                    2, v1.TRAINING, optimization_parameters=v1.AdagradParameters(0.5))
        embedding.enqueue([{"f": v1.EnqueueData([0, 1]), "g": v1.EnqueueData([1, 2])}])
        gradients = {name: np.float32([[1, 2], [3, 4]]) * (name == "f") for name in embedding.get_activations()[0]}
        if by_table:
            embedding.send_table_gradients([et.interleave(embedding.layout, gradients)])
        else:
            embedding.send_gradients([gradients])
        embeddings.append(embedding)
    assert embeddings[0].digest() == embeddings[1].digest()


def test_a_rate_by_the_global_step_is_asked_once_for_all_its_tables():
    asked = []

    def rate(step):
        asked.append(step)
        return step / 8

    table = v1.TableConfig(4, 1, et.Initializer.zeros(), learning_rate_fn=rate)
    embedding = v1.TPUEmbedding({"t": table, "u": table}, {"f": v1.FeatureConfig("t"), "g": v1.FeatureConfig("u")}, 2, v1.TRAINING,
                                optimization_parameters=v1.StochasticGradientDescentParameters(9.0))
    embedding.enqueue([{"f": v1.EnqueueData([0, 1]), "g": v1.EnqueueData([0, 1])}])
    embedding.get_activations()
    with pytest.raises(ValueError, match="step"):
        embedding.send_gradients([{"f": np.ones((2, 1)), "g": np.ones((2, 1))}])
    embedding.send_gradients([{"f": np.ones((2, 1)), "g": np.ones((2, 1))}], step=4)
    assert asked == [4] and rows_of(embedding) == [-0.5, -0.5, 0, 0]


@pytest.mark.parametrize("parameters, rule", [
    (v1.StochasticGradientDescentParameters(0.5), et.SGD(0.5)),
    (v1.AdagradParameters(0.5, 0.25), et.Optimizer("adagrad", 0.5, initial_accumulator_value=0.25)),
    (v1.AdamParameters(0.5, epsilon=1e-4), et.Optimizer("adam", 0.5, epsilon=1e-4)),
    (v1.MomentumParameters(0.5, 0.9), et.Optimizer("momentum", 0.5, momentum=0.9)),
    (v1.AdagradParameters(0.5, 0.25, clip_weight_max=1.5),
     et.Optimizer("adagrad", 0.5, initial_accumulator_value=0.25, clip_weight_max=1.5)),
])
def test_steps_have_the_bits_of_an_engine(parameters, rule):
    embedding = one_feature(optimization_parameters=parameters)
    table = et.TableConfig(4, 1, COUNTING, combiner="sum", name="t")
    reference = et.Embedding({"f": et.FeatureConfig(table)}, rule, et.EngineStrategy())
    for _ in range(3):
        enqueue(embedding, [1, 3])
        embedding.send_gradients([{"f": embedding.get_activations()[0]["f"] + 1}])
        reference.enqueue({"f": [1, 3]})
        reference.apply_gradients({"f": reference.dequeue()["f"] + 1})
    assert embedding.digest() == reference.digest()


@pytest.mark.parametrize("parameters", [
    v1.ProximalAdagradParameters(0.5), v1.FtrlParameters(0.5), v1.ProximalYogiParameters(), v1.RMSPropParameters(0.5, 0.9, 0.5, 1e-8),
])
def test_the_other_classes_step(parameters):
    embedding = one_feature(optimization_parameters=parameters)
    enqueue(embedding, [1, 3])
    embedding.get_activations()
    embedding.send_gradients([{"f": np.ones((2, 1))}])
    changed = np.array(rows_of(embedding)) != [0, 1, 2, 3]
    assert changed.tolist() == [False, True, False, True]


def test_frequencies_are_estimated():
    """Row 1 was named 4 steps ago: (1 - 0.5) * 10 + 0.5 * 4."""
    table = v1.TableConfig(4, 1, et.Initializer.constant(10), combiner="sum", learning_rate_fn=lambda step: step)
    embedding = one_feature(table=table, optimization_parameters=v1.FrequencyEstimatorParameters(0.5, 10, 2.0, 1.0))
    enqueue(embedding, [1, 1])
    embedding.get_activations()
    embedding.send_gradients([{"f": None}], step=4)
    assert rows_of(embedding) == [10, 7, 10, 10]


@pytest.mark.parametrize("make, error, text", [
    (lambda: v1.TableConfig(0, 1), ValueError, "vocabulary_size"),
    (lambda: v1.TableConfig(4, 1, learning_rate=0.1, learning_rate_fn=lambda step: 0.1), ValueError, "learning_rate"),
    (lambda: v1.TableConfig(4, 1, combiner="max"), ValueError, "combiner"),
    (lambda: v1.TableConfig(4, 1, initializer=3), TypeError, "initializer"),
    (lambda: v1.TableConfig(4, 1, optimization_parameters="sgd"), ValueError, "optimization_parameters"),
    (lambda: v1.FeatureConfig("t", -1), ValueError, "max_sequence_length"),
    (lambda: v1.AdagradParameters(0.1, initial_accumulator=0), ValueError, "initial_accumulator"),
    (lambda: v1.AdamParameters(0.1, beta1=1.5), ValueError, "beta1"),
    (lambda: v1.AdamParameters(0.1, lazy_adam="no"), TypeError, "lazy_adam must be a bool"),
    (lambda: one_feature(mode=7), ValueError, "mode must be INFERENCE or TRAINING, got 7"),
    (lambda: one_feature(optimization_parameters=None), ValueError, "t"),
    (lambda: v1.TPUEmbedding({"t": v1.TableConfig(4, 1)}, {"f": v1.FeatureConfig("u")}, 2, v1.INFERENCE), ValueError, "u"),
    (lambda: one_feature(partition_strategy="rows"), ValueError, "partition_strategy"),
    (lambda: v1.TPUEmbedding("ab", {}, 2, v1.INFERENCE), TypeError, "table_to_config_dict must be a dict of configurations by name, got 'ab'"),
    (lambda: v1.TPUEmbedding({}, ["f"], 2, v1.INFERENCE), TypeError, r"feature_to_config_dict must be a dict .* got \['f'\]"),
])
def test_configurations_say_what_is_wrong(make, error, text):
    with pytest.raises(error, match=text):
        make()


@pytest.mark.parametrize("datas, error, text", [
    ([{"f": v1.EnqueueData([1, 9])}], et.DataError, "9"),
    ([{"f": v1.EnqueueData([1])}], ValueError, "f"),
    ([{"g": v1.EnqueueData([1, 2])}], ValueError, "g"),
    ([], ValueError, "1"),
    ({"f": v1.EnqueueData([1, 2])}, TypeError, "list with one dict for each core"),
    ([[v1.EnqueueData([1, 2])]], TypeError, "dict by name"),
    ([{"f": [1, 2]}], TypeError, "core 0, feature 'f'.*EnqueueData"),
    ([{"f": v1.EnqueueData("text")}], (TypeError, ValueError), "core 0, feature 'f': embedding_indices"),
])
def test_batches_say_what_is_wrong_and_change_nothing(datas, error, text):
    embedding = one_feature()
    with pytest.raises(error, match=text):
        embedding.enqueue(datas)
    enqueue(embedding, [1, 3])
    assert embedding.get_activations()[0]["f"].tolist() == [[1], [3]]


def test_calls_out_of_order():
    embedding = one_feature()
    with pytest.raises(RuntimeError):
        embedding.get_activations()
    enqueue(embedding, [1, 3])
    with pytest.raises(RuntimeError):
        embedding.send_gradients([{"f": None}])
    embedding.get_activations()
    with pytest.raises(ValueError, match="f"):
        embedding.send_gradients([{}])
    with pytest.raises(ValueError, match="core 0, table 't'"):
        embedding.send_table_gradients([{"t": np.ones((3, 1))}])
    with pytest.raises(ValueError, match="no table 'u'"):
        embedding.send_table_gradients([{"t": np.ones((2, 1)), "u": np.ones(1)}])
    with pytest.raises(RuntimeError):
        one_feature(mode=v1.INFERENCE).send_gradients([{"f": None}])


def test_waits_for_other_threads_are_as_long_as_one_says():
    embedding = one_feature(mode=v1.INFERENCE, queue_capacity=1)
    other = threading.Thread(target=enqueue, args=(embedding, [1, 3]))  # several threads, and still no wait
    other.start()
    other.join()
    with pytest.raises(RuntimeError, match="full"):
        enqueue(embedding, [1, 3])
    later = threading.Timer(0.1, embedding.get_activations)
    later.start()
    embedding.enqueue([{"f": v1.EnqueueData([2, 2])}], timeout=30)
    later.join()
    assert embedding.get_activations()[0]["f"].tolist() == [[2], [2]]
    with pytest.raises(RuntimeError, match="no batch"):
        embedding.get_activations()
    later = threading.Timer(0.1, enqueue, (embedding, [3, 0]))
    later.start()
    assert embedding.get_activations(timeout=30)[0]["f"].tolist() == [[3], [0]]
    later.join()
    with pytest.raises(ValueError, match="timeout"):
        embedding.get_activations(timeout=-1)


def test_hosts_share_the_rows():
    embedding = v1.TPUEmbedding({"t": v1.TableConfig(5, 1, COUNTING)}, {"f": v1.FeatureConfig("t")}, 4, v1.INFERENCE,
                                partition_strategy="mod", device_config=v1.DeviceConfig(2, 4))
    assert (embedding.num_hosts, embedding.num_cores, embedding.num_cores_per_host) == (2, 4, 2)
    assert (embedding.batch_size, embedding.batch_size_per_core, embedding.mode) == (4, 1, v1.INFERENCE)
    assert embedding.ids_of_host("t", 0).tolist() == [0, 2, 4]
    with pytest.raises(KeyError):
        embedding.ids_of_host("u", 0)
    with pytest.raises(ValueError):
        embedding.ids_of_host("t", 2)
    enqueue(embedding, [4], [3], [2], [1])
    assert [core["f"].tolist() for core in embedding.get_activations()] == [[[4]], [[3]], [[2]], [[1]]]
    text = et.configuration_text(embedding.configuration())
    assert "sharding_strategy: MOD" in text and "num_hosts: 2" in text


def test_checkpoints_interchange_with_engines(tmp_path):
    embedding = one_feature(optimization_parameters=v1.AdagradParameters(0.5, 0.25))
    enqueue(embedding, [1, 3])
    embedding.get_activations()
    embedding.send_gradients([{"f": np.ones((2, 1))}])
    embedding.save(tmp_path, et.CallerState({"a": 1}))
    table = et.TableConfig(4, 1, COUNTING, combiner="sum", name="t")
    reference = et.Embedding({"f": et.FeatureConfig(table)}, et.Optimizer("adagrad", 0.5, initial_accumulator_value=0.25),
                             et.EngineStrategy())
    assert reference.restore(tmp_path).caller.json == {"a": 1}
    assert reference.digest() == embedding.digest()
    other = one_feature(optimization_parameters=v1.AdagradParameters(0.5, 0.25))
    assert other.restore(tmp_path).step == 1 and other.digest() == embedding.digest()
    assert [info.name for info in other.tables] == ["t"]
    other.assign_rows("t", [2], [[8.0]])
    assert other.read_rows("t/accumulators", [1, 2]).tolist() == [[1.25], [0.25]]


def test_values_pickle_copy_and_compare():
    for value in (v1.TableConfig(4, 1, combiner="sum", optimization_parameters=v1.AdagradParameters(0.1)),
                  v1.FeatureConfig("t", 3), v1.AdamParameters(0.1, clip_gradient_max=2), v1.DeviceConfig(2, 4)):
        assert pickle.loads(pickle.dumps(value)) == value == copy.deepcopy(value)
    for copies in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="save it"):
            copies(one_feature())


@pytest.mark.parametrize("tables, features, more, text", [
    ({"t": 3}, {"f": v1.FeatureConfig("t")}, {}, r"table_to_config_dict\['t'\] must be a TableConfig of embertable.v1, got int"),
    ({"t": v1.TableConfig(4, 2)}, {"f": "t"}, {}, r"feature_to_config_dict\['f'\] must be a FeatureConfig of embertable.v1, got str"),
    ({"t": v1.TableConfig(4, 2)}, {"f": v1.FeatureConfig("t")}, {"device_config": 3}, "device_config must be a DeviceConfig or None, got int")])
def test_configurations_are_of_their_classes(tables, features, more, text):
    with pytest.raises(TypeError, match=f"^{text}$"):
        v1.TPUEmbedding(tables, features, 2, v1.INFERENCE, **more)


def test_modes_are_named_as_here():
    with pytest.raises(ValueError, match="optimization_parameters must be given to the table or to all in mode training"):
        v1.TPUEmbedding({"t": v1.TableConfig(4, 2)}, {"f": v1.FeatureConfig("t")}, 2, v1.TRAINING)
