"""Writes embertable/optimizers.py: a class for each rule that the registry has.

    PYTHONPATH=build/python python python/generate_optimizers.py          # writes the file
    PYTHONPATH=build/python python python/generate_optimizers.py --check  # fails unless it is as it would be written

Parameters, defaults, ranges and slots come from the extension, formulas from docs/optimizers.md.
"""

import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
TARGET = HERE / "embertable" / "optimizers.py"
WIDTH = 120

# Words that are not written as in "Rowwise".
WORDS = {"sgd": "SGD", "ftrl": "FTRL", "lamb": "LAMB", "adamw": "AdamW", "rms": "RMS", "mdl": "MDL", "lars": "LARS"}
NAMES = {"none": "NoUpdate", "lars_sgd": "LarsSGD"}  # Python has a None of its own

HEAD = '''"""A class for each rule, with the parameters and defaults of the registry.

python/generate_optimizers.py writes this file. Formulas are those of docs/optimizers.md: w is the row, g its gradient, lr the
learning rate.
"""

from collections.abc import Callable
from typing import Any, Literal

from . import Initializer, Optimizer

Rate = float | Callable[[], float] | Callable[[int], float]
Clip = float | tuple[float | None, float | None] | None
SlotFunction = Callable[[Any, str, bool], Initializer]
'''

# Options of every rule: name, annotation, default.
OPTIONS = [
    ("clipvalue", "Clip", None),
    ("clip_weight_min", "float | None", None),
    ("clip_weight_max", "float | None", None),
    ("weight_decay_factor", "float | None", None),
    ("multiply_weight_decay_factor_by_learning_rate", "bool", False),
    ("use_gradient_accumulation", "bool", True),
    ("low_dimensional_packing_status", "bool", False),
    ("slot_variable_creation_fn", "SlotFunction | None", None),
    ("step_counter", "Rate | None", None),
]

OPTIONS_TEXT = ("Options of every rule: clipvalue (c for -c and c, or a pair of which either may be None) limits a row's summed "
                "gradient, clip_weight_min and clip_weight_max the row after its step; weight_decay_factor, times the rate with "
                "multiply_weight_decay_factor_by_learning_rate, shrinks it before; use_gradient_accumulation=False makes every "
                "occurrence of a row a step of its own; slot_variable_creation_fn(table, slot, row_wise) gives an Initializer; "
                "step_counter is what counts steps where a rule does; low_dimensional_packing_status is only kept. Raises "
                "ValueError naming rule, field, range and value.")


def class_name(rule):
    return NAMES.get(rule) or "".join(WORDS.get(word, word.capitalize()) for word in rule.split("_"))


def formulas():
    text = (HERE.parent / "docs" / "optimizers.md").read_text()
    found = {}
    for line in text.splitlines():
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)] if line.startswith("| `") else []
        if len(cells) > 3 and cells[1].strip("`") not in found:
            found[cells[1].strip("`")] = cells[2].replace("\\*", "*")
    return found


def annotation(default, choices):
    if choices:
        return "Literal[" + ", ".join(f'"{choice}"' for choice in choices) + "]"
    return "bool" if isinstance(default, bool) else "float"


def written(value):
    return f'"{value}"' if isinstance(value, str) else repr(value)


def wrapped(text, indent):
    """Lines of at most WIDTH characters."""
    lines, line = [], ""
    for word in text.split():
        if line and len(indent) + len(line) + 1 + len(word) > WIDTH:
            lines.append(indent + line)
            line = word
        else:
            line = f"{line} {word}" if line else word
    return lines + [indent + line]


def signature(arguments):
    """The arguments of __init__, as many as fit on a line."""
    head, indent = "    def __init__(", " " * len("    def __init__(")
    lines, line = [], head + "self"
    for argument in arguments:
        if len(line) + len(argument) + 4 > WIDTH:
            lines.append(line + ",")
            line = indent + argument
        else:
            line += ", " + argument
    return lines + [line + ") -> None:"]


def class_text(rule, described, formula):
    parameters = described["parameters"]
    slots = [f"{name}, first {value:g}{' for each row' if row_wise else ''}" for name, row_wise, value in described["slots"]]
    about = [f"{name} ({'one of ' + ', '.join(choices) if choices else limits or 'true or false'}; {written(default)})"
             for name, default, choices, limits in parameters]
    text = [*wrapped(f"The rule '{rule}': {formula}.", "    "), ""]
    text[0] = '    """' + text[0].strip()
    text += wrapped("Slots: " + ("; ".join(slots) if slots else "none") + ".", "    ")
    text += wrapped("learning_rate: a number >= 0, or a function that is asked once per step, with the step's number if it needs an "
                    f"argument; {described['learning_rate']!r}." + (" Parameters: " + ", ".join(about) + "." if about else ""), "    ")
    text += ["", *wrapped(OPTIONS_TEXT, "    "), "", f"    >>> embertable.{class_name(rule)}(0.1).rule", f"    {rule!r}", '    """', "", "    __slots__ = ()", ""]
    own_decay = any(name == "weight_decay" for name, *_ in parameters)
    options = [option for option in OPTIONS if not (own_decay and "weight_decay_factor" in option[0])]
    arguments = [f"learning_rate: Rate = {described['learning_rate']!r}"]
    arguments += [f"{name}: {annotation(default, choices)} = {written(default)}" for name, default, choices, _ in parameters]
    arguments += ["*"] + [f"{name}: {kind} = {default!r}" for name, kind, default in options]
    given = ["learning_rate"] + [f"{name}={name}" for name, *_ in parameters] + [f"{name}={name}" for name, *_ in options]
    call = wrapped(f'"{rule}", ' + ", ".join(given), " " * 25)
    call[0] = "        super().__init__(" + call[0].strip()
    call[-1] += ")"
    return "\n".join([f"class {class_name(rule)}(Optimizer):", *text, *signature(arguments), *call]) + "\n"


def generated():
    sys.path[:] = [folder for folder in sys.path if pathlib.Path(folder).resolve() != HERE]  # it lacks the extension
    from embertable import _core

    rules, known = _core._rule_descriptions(), formulas()
    texts = [class_text(rule, described, known[rule]) for rule, described in sorted(rules.items())]
    names = wrapped(", ".join(f'"{class_name(rule)}"' for rule in sorted(rules)), "    ")
    by_rule = "\n".join(f'    "{rule}": {class_name(rule)},' for rule in sorted(rules))
    ends = (f"CLASSES: dict[str, type[Optimizer]] = {{\n{by_rule}\n}}\n\n__all__ = [\n" + "\n".join(names) + ",\n]\n")
    return "\n\n".join([HEAD, *texts, ends])


if __name__ == "__main__":
    text = generated()
    if "--check" in sys.argv[1:]:
        sys.exit(0 if TARGET.read_text() == text else f"{TARGET} is not as python/generate_optimizers.py writes it: run that")
    TARGET.write_text(text)
