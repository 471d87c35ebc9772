"""The extension lives beside those of other frameworks, imported before or after them: same digests."""

import pathlib
import subprocess
import sys

import pytest

TESTS = pathlib.Path(__file__).parents[1] / "tests"
FRAMEWORKS = {"tensorflow": "import tensorflow as tf; tf.linalg.matmul(tf.ones((64, 64)), tf.ones((64, 64)))",
              "torch": "import torch; torch.set_flush_denormal(True); torch.ones(64, 64) @ torch.ones(64, 64)",
              "jax": "import jax, jax.numpy as jnp; jax.jit(lambda x: x @ x)(jnp.ones((64, 64))).block_until_ready()",
              "both": "import tensorflow, torch"}
TRAIN = """
import sys; sys.path.insert(0, %r)
import numpy as np
import embertable as et
from fixture import batches, each, engine, features, user, video
config = features(video(initializer=et.Initializer.uniform(-1, 1, 7)), user(initializer=None))
embedding = engine(2, 2, config, et.Adagrad(0.1), seed=5)
for _ in range(3):
    embedding.enqueue(batches(2))
    embedding.apply_gradients(each(embedding.dequeue(), np.copy))
print(embedding.digest())
""" % str(TESTS)
EXPECTED = (TESTS.parents[1] / "tests/engine/fixture_digest.txt").read_text().strip()


@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize("order", ["before", "after", "between"])
def test_digests_do_not_depend_on_who_was_imported_first(framework, order):
    use = FRAMEWORKS[framework]
    code = {"before": use + TRAIN, "after": "import embertable\n" + use + TRAIN, "between": TRAIN + use + TRAIN}[order]
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert set(done.stdout.split()) == {EXPECTED}
