"""Each program of python/examples ends well, and README names it."""

import pathlib
import runpy

import pytest

FOLDER = pathlib.Path(__file__).resolve().parents[1] / "examples"
PROGRAMS = sorted(path.name for path in FOLDER.glob("*.py"))


@pytest.mark.parametrize("name", PROGRAMS)
def test_it_runs(name, capsys):
    runpy.run_path(str(FOLDER / name), run_name="__main__")
    assert capsys.readouterr().out


def test_the_readme_names_each():
    text = (FOLDER / "README.md").read_text()
    assert [name for name in PROGRAMS if f"`{name}`" not in text] == []
