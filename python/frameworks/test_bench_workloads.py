"""What the comparison of workloads says of its ratios. Needs none of the peers."""

import bench_workloads
import pytest
import workload_ids


@pytest.fixture(autouse=True)
def versions(monkeypatch):
    monkeypatch.setattr(bench_workloads.importlib.metadata, "version", lambda name: "9")


def found(workload, comparison, ratio):
    return {"workload": workload, "peer": bench_workloads.full_title(comparison), "ratio": ratio,
            "wanted": comparison.wanted, "aim": comparison.aim}


def test_ratios_are_held_against_what_is_wanted_and_aimed_at():
    repaired, dealt, _ = bench_workloads.FBGEMM
    adagrad, _ = bench_workloads.TORCH_ADAGRAD
    assert bench_workloads.verdict(found("W1", repaired, 2.4)) == "below the 2.5 wanted"
    assert bench_workloads.verdict(found("W1", repaired, 2.5)) == "2.5 reached, not the 3.5 aimed at"
    assert bench_workloads.verdict(found("W1", repaired, 3.5)) == "3.5 reached"
    assert bench_workloads.verdict(found("W1", adagrad, 11.9)) == "below the 12 wanted"
    assert bench_workloads.verdict(found("W1", adagrad, 20)) == "20 reached"
    assert bench_workloads.verdict(found("W1", dealt, 1)) == ""


def test_the_table_has_a_row_for_each_workload_and_a_column_for_each_peer_that_ran():
    repaired, _, installed = bench_workloads.FBGEMM
    (sgd,) = bench_workloads.TORCH_SGD
    shapes = [("W1", 500_000), ("W3", 40_000_000)]
    results = [found("W1", installed, 13.4), found("W1", repaired, 6.24), found("W3", sgd, 4.18)]
    assert bench_workloads.table(shapes, results) == [
        "| workload | fbgemm_gpu 9, repaired, huge pages | fbgemm_gpu 9, as installed | torch 9, SGD |",
        "|---|---|---|---|",
        "| W1: 26 x 500,000 x 64 | 6.2 | 13 | - |",
        "| W3: 1 x 40,000,000 x 64 | - | - | 4.2 |"]


def test_w3_stands_beside_sgd_and_others_only_where_the_state_of_adagrad_does_not_fit():
    def titles(name, gib):
        return [c.title for c in bench_workloads.comparisons_for(workload_ids.WORKLOADS[name], gib << 30)][3:]

    adagrad = ["Adagrad; ours row-wise", "Adagrad; ours the same"]
    assert titles("W1", 64) == adagrad
    assert titles("W1", 4) == ["SGD"]
    assert titles("W3", 64) == [*adagrad, "SGD"]
    assert titles("W3", 16) == ["SGD"]
