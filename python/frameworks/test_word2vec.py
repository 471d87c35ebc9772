"""Word vectors between Embertable and gensim: each opens what the other wrote, to the same bits.

The command line converts: build/bin/embertable, or what EMBERTABLE_PROGRAM names.
"""

import os
import pathlib
import subprocess

import numpy as np
import pytest
from gensim.models import KeyedVectors

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = os.environ.get("EMBERTABLE_PROGRAM", ROOT / "build/bin/embertable")
WORDS = ["the", "日本語", "ключ", "a/b.c", "x" * 500, "-1", "0.5", "naïve", "\ufeffmark"]


def embertable(*words):
    done = subprocess.run([PROGRAM, *map(str, words), "--format", "word2vec"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.fixture
def vectors():
    rows = np.random.default_rng(3).normal(size=(len(WORDS), 7)).astype(np.float32)
    rows[0, :3] = 1e-42, 3.4e18, -0.0
    keyed = KeyedVectors(7)
    keyed.add_vectors(WORDS, rows)
    return keyed


@pytest.mark.parametrize("name, binary", [("w.txt", False), ("w.txt.gz", False), ("w.bin", True), ("w.bin.gz", True)])
@pytest.mark.parametrize("back", [False, True])
def test_there_and_back_is_the_same(name, binary, back, vectors, tmp_path):
    vectors.save_word2vec_format(tmp_path / name, binary=binary)
    embertable("import", tmp_path / name, "--out", tmp_path / "run", "--table", "word", *["--binary"] * binary)
    embertable("export", tmp_path / "run", "--out", tmp_path / "ours", *["--binary"] * back)
    found = KeyedVectors.load_word2vec_format(tmp_path / "ours", binary=back)
    assert found.index_to_key == WORDS
    np.testing.assert_array_equal(found.vectors.view(np.uint32), vectors.vectors.view(np.uint32))


def test_the_nearest_words_are_the_same(vectors, tmp_path):
    vectors.save_word2vec_format(tmp_path / "w.txt", binary=False)
    embertable("import", tmp_path / "w.txt", "--out", tmp_path / "run", "--table", "word")
    embertable("export", tmp_path / "run", "--out", tmp_path / "ours")
    assert (KeyedVectors.load_word2vec_format(tmp_path / "ours").most_similar("naïve")
            == KeyedVectors.load_word2vec_format(tmp_path / "w.txt").most_similar("naïve"))
