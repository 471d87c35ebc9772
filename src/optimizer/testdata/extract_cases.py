"""Extracts the plain updates of three rules. Usage: extract_cases.py CASES EXTRA > optimizer_cases.json"""

import json
import sys

RULES = {"stochastic_gradient_descent": "sgd", "adagrad": "adagrad", "rowwise_adagrad": "rowwise_adagrad"}
CLIPPED = {"seq_rowwise_adagrad_04"}  # the only sequence of that rule without decay


def wanted(case):
    common = case["common"]
    decay = common["weight_decay_factor"] or case["hyperparameters"].get("weight_decay", 0)
    plain = common["clipping_limits"] == common["gradient_clipping_limits"] == [None, None]
    return case["optimizer"] in RULES and not decay and (plain or case["id"] in CLIPPED)


def one_row(case):
    """A case of one row, as a table of one row."""
    steps, expected = [], []
    for step in case["steps"]:
        gradients = step.get("contributions") or ([step["gradient"]] if step["touched"] else [])
        replica = {"ids": [0] * len(gradients), "gradients": gradients}
        steps.append({"learning_rate": step["learning_rate"], "replicas": [replica]})
        after = {"after_step": len(steps), "rows": [step["expected_row"]], "slots": wrapped(step["expected_slots"])}
        if "expected_row_f32" in step:
            after["rows_f32"] = [step["expected_row_f32"]]
            after["slots_f32"] = wrapped(step["expected_slots_f32"])
        expected.append(after)
    return [case["initial_row"]], wrapped(case["initial_slots"]), steps, expected


def wrapped(slots):
    return {name: [row] for name, row in slots.items()}


def table(case):
    after = {"after_step": len(case["steps"])}
    for name in ["rows", "slots", "rows_f32", "slots_f32"]:
        after[name] = case["expected_" + name]
    return case["initial_rows"], case["initial_slots"], case["steps"], [after]


def extract(case):
    rows, slots, steps, expected = table(case) if case.get("kind") == "sequence" else one_row(case)
    parameters = {k: v for k, v in case["hyperparameters"].items() if not k.startswith("weight_decay")}
    return {
        "id": case["id"],
        "rule": RULES[case["optimizer"]],
        "parameters": parameters,
        "accumulate": case["common"]["gradient_accumulation_status"] == "ENABLED",
        "clip_weight": case["common"]["clipping_limits"],
        "tolerance": case["float32_tolerance"],
        "rows": rows,
        "slots": slots,
        "steps": steps,
        "expected": expected,
    }


def main():
    cases = [case for path in sys.argv[1:] for case in json.load(open(path))]
    lines = [json.dumps(extract(case), separators=(",", ":")) for case in cases if wanted(case)]
    print("[\n" + ",\n".join(lines) + "\n]")


if __name__ == "__main__":
    main()
