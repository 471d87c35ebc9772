"""What embertable.doctor finds, in Python and by the command."""

import json
import subprocess
import sys

import numpy as np
import pytest

import embertable as et

SUBJECTS = ["version", "SIMD level", "threads", "huge pages", "memory", "limits", "folder", "MPI", "Python", "numpy"]


def test_every_subject_is_found(tmp_path):
    found = et.doctor(tmp_path)
    assert [one.subject for one in found][:len(SUBJECTS)] == SUBJECTS
    assert found[SUBJECTS.index("numpy")].found == np.__version__
    assert all(one.found for one in found) and list(tmp_path.iterdir()) == []
    assert str(tmp_path) in found[SUBJECTS.index("folder")].found


def test_the_command_finds_the_same_subjects(tmp_path):
    done = subprocess.run([sys.executable, "-m", "embertable", "doctor", tmp_path, "--json"], check=True,
                          capture_output=True, text=True)
    findings = json.loads(done.stdout)["findings"]
    assert [one["subject"] for one in findings] == [one.subject for one in et.doctor(tmp_path)]
    assert all(one["good"] == (one["advice"] == "") for one in findings)


def test_a_forced_level_is_told_with_its_remedy(tmp_path, monkeypatch):
    monkeypatch.setenv("EMBERTABLE_SIMD", "sse")
    level = et.doctor(tmp_path)[1]
    assert not level.good and "EMBERTABLE_SIMD: must be a level" in level.advice


def test_a_missing_folder_is_a_finding(tmp_path):
    found = et.doctor(tmp_path / "none")
    folder, = (one for one in found if one.subject == "folder")
    assert not folder.good and "cannot open" in folder.advice
    assert "CHANGE folder" in repr(found)


@pytest.mark.parametrize("advice, line", [("", "good   disk        full\nall good"),
                                          ("wait", "CHANGE disk        full\n                   wait")])
def test_a_diagnosis_is_shown_as_the_command_shows_it(advice, line):
    assert repr(et.Diagnosis([et.Finding("disk", "full", advice)])) == line
