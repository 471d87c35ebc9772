"""What TensorFlow 2.21 answered to the cases in tests/serving/testdata/lookup_cases.json, by Python."""

import json
import pathlib

import numpy as np
import pytest

import embertable as et

FILE = pathlib.Path(__file__).parents[2] / "tests/serving/testdata/lookup_cases.json"
ERRORS = {"ValueError": ValueError, "TypeError": TypeError, "KeyError": KeyError, "DataError": et.DataError}
GOLDEN = json.loads(FILE.read_text())


def tree_of(case, entries, leaf):
    """A tuple, or a dict by path, of `leaf` of each entry."""
    if case["container"] == "map":
        return {entry["path"]: leaf(entry) for entry in entries}
    return tuple(leaf(entry) for entry in entries)


def ids_of(entry):
    if entry["kind"] == "dense":
        return np.array(entry["values"], np.int64).reshape(entry["shape"])
    if entry["kind"] == "sparse":
        return et.SparseIds(np.array(entry["indices"], np.int64).reshape(-1, len(entry["shape"])), entry["values"],
                            entry["shape"])
    if entry.get("rank") == 3:
        return Ragged(et.RaggedIds(entry["values"], entry["row_splits"]), [0, len(entry["row_splits"]) - 1])
    return et.RaggedIds(entry["values"], entry["row_splits"])


class Ragged:
    """As tf.RaggedTensor, of one more row around another."""

    def __init__(self, values, row_splits):
        self.values, self.row_splits = values, row_splits


def weights_of(entry):
    if entry is None:
        return None
    values = np.array(entry["values"], np.float32)
    return {"dense": lambda v: v, "sparse": et.SparseWeights, "ragged": et.RaggedWeights}[entry["kind"]](values)


def look_up(case):
    tables, rows = {}, {}
    for feature in case["features"]:
        name = feature["table"]
        if name not in tables:
            golden = GOLDEN["tables"][name]
            tables[name] = et.TableConfig(golden["rows"], golden["dim"], combiner=feature["combiner"], name=name)
            if name not in case.get("missing_tables", []):
                rows[tables[name]] = np.array(golden["values"], np.float32).reshape(golden["rows"], golden["dim"])
    features = tree_of(case, case["features"], lambda feature: et.FeatureConfig(
        tables[feature["table"]], feature["max_sequence_length"], feature["validate"], feature["output_shape"]))
    weights = None
    if case["weights"] is not None:
        by_path = dict(zip((entry["path"] for entry in case["inputs"]), case["weights"]))
        weights = tree_of(case, case["inputs"], lambda entry: weights_of(by_path.get(entry["path"])))
        if len(case["weights"]) != len(case["inputs"]):
            weights = tuple(map(weights_of, case["weights"]))
    return et.serving_embedding_lookup(tree_of(case, case["inputs"], ids_of), weights, rows, features)


@pytest.mark.parametrize("case", GOLDEN["cases"], ids=lambda case: case["id"])
def test_lookup(case):
    want = case.get("embertable", case)
    if "error" in want:
        with pytest.raises(ERRORS[want["error"]]):
            look_up(case)
        return
    got = look_up(case)
    assert len(got) == len(want["results"])
    for entry, result in zip(case["inputs"], want["results"]):
        one = got[entry["path"]] if isinstance(got, dict) else got[int(entry["path"])]
        assert one.shape == tuple(result["shape"])
        np.testing.assert_allclose(one.ravel(), result["values"], **GOLDEN["tolerance"])
