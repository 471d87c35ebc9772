"""Extracts what golden_test.cc reads. Usage: extract_cases.py CASES EXTRA > optimizer_cases.json"""

import json
import struct
import sys

RULES = {"stochastic_gradient_descent": "sgd"}  # others have one name
PARAMETERS = {
    "adam": {"beta1": "beta_1", "beta2": "beta_2", "use_sum_inside_sqrt": "sum_inside_sqrt"},
    "ftrl": {
        "l1": "l1_regularization_strength",
        "l2": "l2_regularization_strength",
        "lr_power": "learning_rate_power",
        "multiply_linear_by_lr": "multiply_linear_by_learning_rate",
    },
}


def shortened(x):
    """The number of fewest digits that is the same in binary32."""
    if not isinstance(x, float):
        return x
    bits = struct.pack("f", x)
    nearest = next(n for n in range(1, 18) if struct.pack("f", float(f"{x:.{n}g}")) == bits)
    short = float(f"{x:.{nearest}g}")
    return int(short) if short == int(short) and not (short == 0 and bits[3]) else short


def floats(x):
    if isinstance(x, dict):
        return {key: floats(value) for key, value in x.items()}
    return [floats(value) for value in x] if isinstance(x, list) else shortened(x)


def parameters(case):
    given = dict(case["hyperparameters"])
    if case["optimizer"] == "adam":
        given["lazy_adam"] = not given.pop("use_non_lazy_adam")
    names = PARAMETERS.get(case["optimizer"], {})
    return {names.get(key, key): value for key, value in given.items()}


def options(case):
    common = case["common"]
    given = {}
    for name, limits in ("clip_weight", "clipping_limits"), ("clip_gradient", "gradient_clipping_limits"):
        if common[limits] != [None, None]:
            given[name] = common[limits]
    if common["weight_decay_factor"]:
        given["decay"] = common["weight_decay_factor"]
        given["decay_by_rate"] = common["multiply_weight_decay_factor_by_learning_rate"]
    if common["gradient_accumulation_status"] == "DISABLED":
        given["accumulate"] = False
    return given


def expected(after, bits, want, slots):
    """What is given as bits is not given as numbers."""
    if bits is None:
        return {"after": after, "rows": want, "slots": slots}
    return {"after": after, "rows_f32": bits[0], "slots_f32": bits[1]}


def wrapped(slots):
    return {name: [row] for name, row in slots.items()}


def one_row(case):
    """A case of one row, as a table of one row."""
    steps, after = [], []
    for step in case["steps"]:
        gradients = step.get("contributions") or ([step["gradient"]] if step["touched"] else [])
        steps.append({"rate": step["learning_rate"], **step.get("dynamic_inputs", {})})
        steps[-1]["replicas"] = [{"ids": [0] * len(gradients), "gradients": gradients}]
        bits = None
        if "expected_row_f32" in step:
            bits = [step["expected_row_f32"]], wrapped(step["expected_slots_f32"])
        after.append(expected(len(steps), bits, [step["expected_row"]], wrapped(step["expected_slots"])))
    return [case["initial_row"]], wrapped(case["initial_slots"]), steps, after


def table(case):
    steps = [{"rate": step["learning_rate"], "replicas": step["replicas"]} for step in case["steps"]]
    bits = None
    if "expected_rows_f32" in case:
        bits = case["expected_rows_f32"], case["expected_slots_f32"]
    after = expected(len(steps), bits, case["expected_rows"], case["expected_slots"])
    return case["initial_rows"], case["initial_slots"], steps, [after]


def extract(case):
    rows, slots, steps, after = table(case) if case.get("kind") == "sequence" else one_row(case)
    return {
        "id": case["id"],
        "rule": RULES.get(case["optimizer"], case["optimizer"]),
        "parameters": floats(parameters(case)),
        "options": floats(options(case)),
        "tolerance": case["float32_tolerance"],
        "rows": floats(rows),
        "slots": floats(slots),
        "steps": floats(steps),
        "expected": floats(after),
    }


def main():
    cases = [case for path in sys.argv[1:] for case in json.load(open(path))]
    lines = [json.dumps(extract(case), separators=(",", ":")) for case in cases]
    print("[\n" + ",\n".join(lines) + "\n]")


if __name__ == "__main__":
    main()
