"""What `embertable train --tensorboard` writes is what TensorFlow reads."""

import pathlib
import subprocess

import pytest

tf = pytest.importorskip("tensorflow", reason="needs tensorflow, which ./dev frameworks installs")

ROOT = pathlib.Path(__file__).parents[2]
COMMAND = ROOT / "build/bin/embertable"


@pytest.mark.skipif(not COMMAND.exists(), reason="needs build/bin/embertable, which ./dev build makes")
def test_tensorflow_reads_the_scalars(tmp_path):
    subprocess.run([COMMAND, "train", ROOT / "examples/jobs/goodbooks.toml", "--data", ROOT / "examples/data", "--set",
                    "schedule.epochs=2", "--tensorboard", tmp_path], check=True, stdout=subprocess.DEVNULL)
    (file,) = tmp_path.iterdir()
    scalars = {}
    for event in tf.compat.v1.train.summary_iterator(str(file)):
        for value in event.summary.value:
            scalars.setdefault(value.tag, []).append((event.step, value.simple_value))
    assert {"training/rmse", "learning_rate", "samples_per_second", "epoch", "test/rmse", "test/mae"} <= set(scalars)
    assert 0.5 < scalars["test/rmse"][-1][1] < 1.5
    steps = [step for step, _ in scalars["training/rmse"]]
    assert steps == sorted(steps)
