"""The digest of the fixture after three steps, the one that tests/engine/digest_test.cc has."""

import pathlib

import numpy as np
import pytest

import embertable as et
from fixture import batches, each, engine, features, user, video

EXPECTED = (pathlib.Path(__file__).parents[2] / "tests/engine/fixture_digest.txt").read_text().strip()


@pytest.mark.parametrize("hosts, floats", [(1, np.float32), (2, np.float64)])
def test_python_and_cpp_give_the_same_bits(hosts, floats):
    config = features(video(initializer=et.Initializer.uniform(-1, 1, 7)), user(initializer=None))
    embedding = engine(2, hosts, config, et.Adagrad(0.1), seed=5)
    for _ in range(3):
        embedding.enqueue(batches(2))
        embedding.apply_gradients(each(embedding.dequeue(), lambda activation: activation.astype(floats)))
    assert embedding.digest() == EXPECTED
