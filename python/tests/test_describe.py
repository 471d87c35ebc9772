"""What objects say of themselves."""

import copy
import pickle
import re
import typing

import numpy as np

import embertable as et
from embertable import tpu_embedding as tpu
from fixture import engine, features


def test_an_engine_says_what_it_has_and_where_it_is():
    embedding = engine(2)
    assert repr(embedding) == ("Embedding(2 tables (24 rows, 256 B), 3 features, not built, on "
                               "EngineStrategy(hosts=1, replicas_per_host=2, sharding='div'))")
    embedding.build(per_replica_batch_size=2)
    assert "built, step 0" in repr(embedding) and "not built" not in repr(embedding)
    assert repr(et.Embedding(features())).endswith("not built, plain)")
    assert repr(tpu.TPUEmbedding(features(), None)).startswith("TPUEmbedding(2 tables")


def test_summaries_have_tables_and_features():
    table, other = et.TableConfig(8, 4, name="films"), et.TableConfig(2, 3, combiner="sum", row_type="bfloat16")
    config = {"b": et.FeatureConfig(table), "a": [et.FeatureConfig(other), et.FeatureConfig(table, output_shape=(2, 5))]}
    embedding = et.Embedding(config, et.PartialRowwiseAdam(0.1), et.EngineStrategy(threads=1))
    lines = [re.split(r"  +", line.strip()) for line in embedding.summary().splitlines()]
    assert lines[2] == ["table", "rows", "dim", "row type", "combiner", "optimizer", "slots", "bytes"]
    # films: 8 rows of 4 + 4 + 1 floats; the other: 2 of 3 + 3 + 1
    by_name = {line[0]: line for line in lines[3:5]}
    assert by_name["films"][1:5] == ["8", "4", "float32", "mean"] and by_name["films"][-2:] == ["momenta, velocities (a row)", "288 B"]
    assert by_name["table_0"][-1] == "44 B" and by_name["table_0"][3:5] == ["bfloat16", "sum"]
    assert [line[:2] for line in lines[-3:]] == [["'a/0'", "table_0"], ["'a/1'", "films"], ["'b'", "films"]]
    assert lines[-2][2] == "(2, 5)"
    html = embedding._repr_html_()
    assert html.count("<tr>") == 2 + 2 + 3 and "films" in html


def test_html_is_escaped():
    embedding = et.Embedding(et.FeatureConfig(et.TableConfig(8, 4, name="<b>")))
    assert "&lt;b&gt;" in embedding._repr_html_() and "<b>" not in embedding._repr_html_()


def test_serving_objects_do_too(tmp_path):
    trained = et.Embedding(features(), et.SGD(0.1))
    trained.build()
    serving = et.ServingEmbedding.open(trained.save(tmp_path / "run"), features())
    assert repr(serving) == "ServingEmbedding(2 tables (24 rows, 256 B), 3 features, step 0)"
    assert "video" in serving.summary() and "<table>" in serving._repr_html_()


def test_batches_and_reports_say_what_they_hold(tmp_path):
    assert repr(et.RaggedIds.from_rows([[1], [], [2, 3]])) == "RaggedIds(3 ids in 3 rows)"
    assert repr(et.SparseIds([[0, 0]], [5], [2, 3])) == "SparseIds(1 id, shape (2, 3))"
    assert repr(et.DenseIds([1, 2])) == "DenseIds(shape (2,))"
    assert repr(et.RaggedWeights([1.0, 2.0])) == "RaggedWeights(2)"
    embedding = et.Embedding(features(), et.Adagrad(0.1))
    embedding.build()
    report = embedding.restore(embedding.save(tmp_path / "run", et.CallerState({"epoch": 2}, {"w": np.ones(1)})))
    assert repr(report) == "RestoreReport(step=0, missing=[], extra=[], mismatched=[], skipped=[], grown=[])"
    assert repr(report.caller) == "CallerState(json={'epoch': 2}, tensors=['w'], blobs=[])"
    with et.CheckpointRun(tmp_path / "other") as run:
        assert repr(run) == f"CheckpointRun({str(tmp_path / 'other')!r})"
    assert repr(tpu.TPUStrategy(hosts=2, threads=1)) == "TPUStrategy(hosts=2, replicas_per_host=1, sharding='div')"
    assert repr(et.Exchange.threads(3)[1]) == "Exchange(host=1, hosts=3)"
    assert repr(et.FixedShardsPartitioner(3)) == "FixedShardsPartitioner(num_shards=3)"
    assert repr(et.MinSizePartitioner(4)) == "MinSizePartitioner(min_shard_bytes=4, max_shards=1, bytes_per_string=16)"
    assert repr(et.MaxSizePartitioner(8)) == "MaxSizePartitioner(max_shard_bytes=8, max_shards=None, bytes_per_string=16)"
    token = engine().look_up(tuple(et.RaggedIds.from_rows([[1]]) for _ in range(3)))[1]
    assert repr(token) == "LookupToken(valid)"


def test_what_pickles_and_copies():
    builder = et.IdMapBuilder("string")
    builder.add(["a", "b"])
    ids = builder.build()
    for value in (et.TableConfig(8, 4), et.SGD(0.1), et.Initializer.constant(2), et.RaggedIds([1], [0, 1])):
        assert repr(pickle.loads(pickle.dumps(value))) == repr(copy.deepcopy(value)) == repr(value)
    assert et.IdMap.from_bytes(ids.to_bytes()).num_keys == 2


def test_a_field_may_be_called_table():
    class Features(typing.NamedTuple):
        table: object
        user: object

    films = et.TableConfig(8, 4, name="films")
    embedding = et.Embedding(Features(et.FeatureConfig(films), et.FeatureConfig(films)))
    assert "2 features" in repr(embedding)
    assert "'table'  films" in embedding.summary() and "'user'   films" in embedding.summary()
