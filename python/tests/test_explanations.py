"""Arguments that do not fit are named, with their rule and what was given."""

import numpy as np
import pytest

import embertable as et
from embertable import tpu_embedding as tpu
from fixture import engine, user

TABLE = et.TableConfig(10, 4, name="films")
FEATURE = et.FeatureConfig(TABLE)


@pytest.mark.parametrize("call, text", [
    (lambda: et.TableConfig(10, 4, vocab=3), "TableConfig: there is no argument 'vocab'; the nearest is 'vocabulary_size'"),
    (lambda: et.TableConfig(vocabulary_size=10, embedding_dim=4),
     "TableConfig: there is no argument 'embedding_dim'; the nearest is 'dim'"),
    (lambda: et.TableConfig(10, 4, name=3), "TableConfig: name must be text or None, got int"),
    (lambda: et.TableConfig(10, 4, name="\ud800"), "TableConfig: name must be text that UTF-8 has or None, got "),
    (lambda: et.TableConfig(10, 4, replicated=None), "TableConfig: replicated must be True or False, got None"),
    (lambda: et.TableConfig(10, 4, vocabulary_size=10), "TableConfig: vocabulary_size is given twice"),
    (lambda: et.TableConfig(), "TableConfig: vocabulary_size and dim are missing"),
    (lambda: et.EngineStrategy(num_hosts=2), "EngineStrategy: there is no argument 'num_hosts'; the nearest is 'hosts'"),
    (lambda: et.QuantizationConfig(2, 0), "QuantizationConfig: upper is missing"),
    (lambda: et.Embedding(FEATURE, batch_size=3), "Embedding: there is no argument 'batch_size'; there are 'feature_config', "),
    (lambda: et.Embedding(FEATURE, seed=None), "Embedding: seed must not be None"),
    (lambda: et.Embedding(FEATURE, out_of_range=0), "Embedding: out_of_range must be text, got int"),
    (lambda: et.RaggedIds([1]), "RaggedIds: row_splits is missing"),
    (lambda: et.RaggedIds([1], [0, 1], [3]), "RaggedIds: at most 2 arguments are given without their names, got 3"),
    (lambda: et.RaggedIds.from_padded([[1]], pad=None), "RaggedIds.from_padded: pad must be an integer, got None"),
    (lambda: engine().enqueue(np.array([1]), trainning=False),
     "Embedding.enqueue: there is no argument 'trainning'; the nearest is 'training'"),
    (lambda: engine().restore(3), "Embedding.restore: path must be a path, got int"),
    (lambda: et.Embedding.enqueue(), "Embedding.enqueue: features is missing"),
    (lambda: et.ServingEmbedding.open("run", table="map"),
     "ServingEmbedding.open: there is no argument 'table'; the nearest is 'tables'"),
    (lambda: et.find_checkpoint(None), "find_checkpoint: path must be a path, got None"),
    (lambda: et.Optimizer(3, 0.1), "Optimizer: rule must be text, got int"),
    (lambda: et.Variable(), "Variable: value is missing"),
    (lambda: et.MaxSizePartitioner(), "MaxSizePartitioner: max_shard_bytes is missing"),
    (lambda: et.CheckpointRun(), "CheckpointRun: directory is missing"),
    (lambda: et.Exchange(1), "Exchange: hosts is missing"),
    (lambda: tpu.FeatureConfig(TABLE, max_sequence_len=3),
     "FeatureConfig: there is no argument 'max_sequence_len'; the nearest is 'max_sequence_length'"),
])
def test_a_call_says_which_argument_does_not_fit(call, text):
    with pytest.raises(TypeError) as raised:
        call()
    assert str(raised.value).startswith(text)
    assert raised.value.__cause__ is None and raised.value.__suppress_context__ is False and raised.value.__context__ is None


@pytest.mark.parametrize("owner, name, value, text", [
    (engine(), "verify_output_shapes_on_enqueue", "no", "Embedding: verify_output_shapes_on_enqueue must be True or False, got str"),
    (FEATURE, "name", 3, "FeatureConfig: name must be text or None, got int"),
    (FEATURE, "validate_weights_and_indices", 1, "FeatureConfig: validate_weights_and_indices must be True or False, got int")])
def test_an_attribute_says_what_it_takes(owner, name, value, text):
    with pytest.raises(TypeError, match=f"^{text}$"):
        setattr(owner, name, value)


def test_a_subclass_is_called_by_its_own_name():
    class Mine(et.FeatureConfig):
        pass

    assert Mine(TABLE, name="mine").name == "mine"
    with pytest.raises(TypeError, match="^Mine: there is no argument 'nam'; the nearest is 'name'"):
        Mine(TABLE, nam="mine")


class OwnError(TypeError):
    pass


@pytest.mark.parametrize("kind", [TypeError, OwnError])
@pytest.mark.parametrize("function", ["build", "__init__"])
def test_type_errors_of_the_callers_functions_stay_as_they_are(function, kind):
    raised = kind(function + "(): incompatible function arguments, said the initializer")

    def fails(*_):
        raise raised

    class Source:
        __array__ = fails

    serving = et.ServingEmbedding(et.FeatureConfig(et.TableConfig(3, 2, et.Initializer.function(fails))))
    for call in [serving.build, lambda: et.DenseIds(Source()), lambda: et.Variable(Source())]:
        with pytest.raises(kind) as caught:
            call()
        assert caught.value is raised


def test_values_of_the_right_class_are_told_from_others():
    with pytest.raises(TypeError, match="^RaggedIds.from_padded: pad must be an integer of 64 bits, got 1180591620717411303424$"):
        et.RaggedIds.from_padded([[1]], pad=2**70)
    with pytest.raises(TypeError, match="^TableConfig: replicated must be True or False, got numpy.bool"):
        et.TableConfig(10, 4, replicated=np.True_)
    with pytest.raises(TypeError, match=r"^TableConfig: name must be text that UTF-8 has or None, got '\\ud800'$"):
        et.TableConfig(10, 4, name="\ud800")
    with pytest.raises(TypeError, match="^initializer must be an Initializer, got int$"):
        et.TableConfig(10, 4, 3)


def test_what_no_rule_tells_apart_stays_as_it_is():
    with pytest.raises(TypeError, match="incompatible function arguments"):
        et.Embedding.restore(3, "run")


@pytest.mark.parametrize("ids, kind, text", [
    ([[1, 2], [3]], ValueError, "of uneven lengths; RaggedIds.from_rows takes them"),
    (["a", "b"], TypeError, "ids must be integers, got <U1; an IdMap makes integers of keys"),
    (np.array(["a", "b"]), TypeError, "ids must be integers, got <U1; an IdMap makes integers of keys"),
    (np.array(["a", "b"], object), ValueError, "got ndarray of texts; an IdMap makes integers of keys"),
    (np.empty((3, 0), object), ValueError, "ids must be an array of integers, got ndarray")])
def test_ids_that_are_none_say_what_makes_ids(ids, kind, text):
    embedding = et.Embedding(et.FeatureConfig(user()), et.SGD(0.1), et.EngineStrategy(threads=1))
    with pytest.raises(kind, match=text):
        embedding.enqueue(ids)


def test_keys_of_tables_are_configurations():
    with pytest.raises(TypeError, match="^the keys of tables must be TableConfig objects, got 'films'$"):
        et.serving_embedding_lookup(np.array([1]), None, {"films": np.zeros((10, 4), np.float32)}, FEATURE)


def test_id_maps_are_named(tmp_path):
    embedding = et.Embedding(FEATURE)
    embedding.build()
    for maps, text in ({"x": 1}, r"id_maps\['x'\] must be an IdMap, got int"), ([1], "id_maps must be a dict of IdMaps by name, got list"):
        with pytest.raises(TypeError, match=f"^{text}$"):
            embedding.save(tmp_path / "run", None, maps)


def test_row_types_are_those_that_train():
    for wrong in ("float16", "int8"):
        with pytest.raises(ValueError, match=f"^row_type must be 'float32' or 'bfloat16', got '{wrong}'$"):
            et.TableConfig(10, 4, row_type=wrong)


def test_a_table_without_a_name_has_none_in_messages():
    with pytest.raises(ValueError, match="^table: initializer must have vocabulary_size"):
        et.TableConfig(10, 4, et.Initializer.values(np.zeros((3, 4))))
