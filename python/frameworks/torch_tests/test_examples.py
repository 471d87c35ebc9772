"""The examples of torch_examples on real data: what they learn, and that each says whose the time is."""

import os
import pathlib
import re
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parents[1]
DATA = pathlib.Path(os.environ.get("EMBERTABLE_DATA", HERE.parents[2] / "shared/data"))
EXAMPLES = {  # file of data, what is printed, the least value
    "dlrm_criteo": ("criteo/criteo_sample.tsv.gz", "test AUC", 0.766),
    "two_tower_gowalla": ("gowalla/train.txt.gz", "recall@20", 0.14),
    "lightning_criteo": ("criteo/criteo_sample.tsv.gz", "test AUC", 0.766),
    "gru_beauty": ("amazon-seq/Beauty.txt.gz", "hr@10", 0.075),
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_example_reaches_what_it_says(name):
    file, measure, least = EXAMPLES[name]
    if not (DATA / file).exists():
        pytest.skip(f"runs where EMBERTABLE_DATA, or '{DATA}', has {file}")
    if name.startswith("lightning"):
        pytest.importorskip("lightning", reason="pip install lightning")
    done = subprocess.run([sys.executable, HERE / f"torch_examples/{name}.py", DATA], capture_output=True, text=True, timeout=400)
    assert done.returncode == 0, done.stderr
    print(name, done.stdout.strip())
    last = done.stdout.splitlines()[-1]
    assert re.search(r"[\d.]+ s: tables \d+%, ", last)
    assert float(re.search(rf"{measure} ([\d.]+)", last)[1]) >= least, last


def test_the_model_of_clicks_is_short():
    lines = (HERE / "torch_examples/dlrm_criteo.py").read_text().splitlines()
    assert len(lines) < 80
