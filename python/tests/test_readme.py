"""The README's example runs, and learns."""

import pathlib
import runpy

import numpy as np

EXAMPLE = pathlib.Path(__file__).with_name("readme_example.py")


def test_the_example_learns(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = runpy.run_path(str(EXAMPLE))
    readme = EXAMPLE.parents[2] / "README.md"
    if readme.exists():  # it shows what is printed
        assert f"\n```\n{capsys.readouterr().out}```\n" in readme.read_text()
    assert np.abs(names["activations"]["watched"] - 1).mean() < 0.2
    served = names["serving"](names["batch"])["watched"]
    assert np.abs(served - 1).mean() < 0.2
