"""Makes vectors.inl. Usage: extract_vectors.py CASES EXTRA > vectors.inl

CASES and EXTRA are optimizer_cases.json and golden/optimizers_extra.json of the project's specification, which is not part
of the repository. Of each rule the cases of one row are taken that differ in parameters or options, MOST at most; the
names become those of the rules. Vectors of rules that the specification lacks are added by hand behind these.
"""

import json
import sys

MOST = 8
RULES = {"stochastic_gradient_descent": "sgd"}
# What programs and users bring does not stand in a table of numbers.
SKIPPED = {"user_defined_program"}
PARAMETERS = {
    "ftrl": {"l1": "l1_regularization_strength", "l2": "l2_regularization_strength", "lr_power": "learning_rate_power",
             "multiply_linear_by_lr": "multiply_linear_by_learning_rate"},
    "adam": {"beta1": "beta_1", "beta2": "beta_2", "use_sum_inside_sqrt": "sum_inside_sqrt"},
}
ORACLES = {  # see golden/README-optimizers.md
    "stochastic_gradient_descent": "TF kernel, SparseCore, Keras, TF Addons, torch, FBGEMM",
    "adagrad": "TF kernels, SparseCore, Keras, TF Addons, torch, FBGEMM",
    "adagrad_momentum": "SparseCore, TF RMSProp kernel",
    "ftrl": "TF kernel, SparseCore, Keras, TF Addons",
    "adam": "TF kernel, SparseCore, torch, optax",
    "momentum": "TF kernel, torch, optax",
    "adadelta": "TF kernel, torch",
    "rms_prop": "TF kernel",
    "centered_rms_prop": "TF kernel",
    "proximal_adagrad": "TF kernel",
    "assign": "TF kernel",
    "lion": "optax, Keras",
    "proximal_yogi": "TF Addons Yogi, optax",
    "frequency_aware_adagrad": "SparseCore",
    "bounded_adagrad": "TF Adagrad kernel",
    "mdl_adagrad_light": "TF Adagrad kernel",
    "online_yogi": "reference of the specification",
    "frequency_estimator": "pseudo-code of the proto",
}

HEAD = """\
// clang-format off
// One vector a string, as vectors.cc reads it: rows and slots after steps that other programs computed, TensorFlow's
// kernels, SparseCore's update programs, Keras, TensorFlow Addons, torch.optim, optax and FBGEMM, as `source` says;
// where there are bits, in the specification's order of binary32 operations. extract_vectors.py has made these; vectors
// of rules that its input lacks stand at the end.
"""


def settings(case):
    rule = case["optimizer"]
    names = PARAMETERS.get(rule, {})
    found = {}
    for name, value in case["hyperparameters"].items():
        if rule == "adam" and name == "use_non_lazy_adam":
            name, value = "lazy_adam", not value
        found[names.get(name, name)] = value
    return found


def options(case):
    common = case["common"]
    found = {}
    for name, limits in ("clip_gradient", common["gradient_clipping_limits"]), ("clip_weight", common["clipping_limits"]):
        found |= {f"{name}_{side}": x for side, x in zip(("min", "max"), limits) if x is not None}
    if common["weight_decay_factor"]:
        found["weight_decay_factor"] = common["weight_decay_factor"]
    if common["multiply_weight_decay_factor_by_learning_rate"]:
        found["multiply_weight_decay_factor_by_learning_rate"] = True
    if common["gradient_accumulation_status"] == "DISABLED":
        found["use_gradient_accumulation"] = False
    return found


def step(case, now, index):
    slots = case["slot_order"]
    found = {
        "learning_rate": now["learning_rate"],
        "step_counter": (now.get("dynamic_inputs") or {}).get("step_counter", index + 1),
        "gradients": now.get("contributions") or ([now["gradient"]] if now["touched"] else []),
        "expected": [now["expected_row"]] + [now["expected_slots"][name] for name in slots],
    }
    if "expected_row_f32" in now:
        found["bits"] = [now["expected_row_f32"]] + [now["expected_slots_f32"][name] for name in slots]
    return found


def vector(case):
    name = case["optimizer"]
    found = {
        "id": case["id"],
        "source": case.get("oracle") or ORACLES[name],
        "rule": RULES.get(name, name),
        "settings": settings(case),
        "options": options(case),
        "slots": case["slot_order"],
        "start": [case["initial_row"]] + [case["initial_slots"][slot] for slot in case["slot_order"]],
        "steps": [step(case, now, i) for i, now in enumerate(case["steps"])],
        "rtol": case["float32_tolerance"]["rtol"],
        "atol": case["float32_tolerance"]["atol"],
    }
    return 'R"(' + json.dumps(found, separators=(",", ":")) + ')",'


def in_order(case):
    """Whether step n of the case is step n of its optimizer."""
    steps = enumerate(case["steps"], 1)
    return all((now.get("dynamic_inputs") or {}).get("step", n) == n for n, now in steps)


def chosen(cases):
    taken = {}
    for case in cases:
        if case.get("kind") == "sequence" or case["optimizer"] in SKIPPED or not in_order(case):
            continue
        key = json.dumps([case["hyperparameters"], case["common"]])
        of_rule = taken.setdefault(case["optimizer"], {})
        if len(of_rule) < MOST:
            of_rule.setdefault(key, case)
    return [case for rule in sorted(taken) for case in taken[rule].values()]


def main():
    cases = [case for path in sys.argv[1:] for case in json.load(open(path))]
    print(HEAD + "\n".join(map(vector, chosen(cases))))


if __name__ == "__main__":
    main()
