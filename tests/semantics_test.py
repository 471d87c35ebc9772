"""What docs/semantics.md pairs is there: every rule once, its source file and its test; and every numbered case has
a test that bears its number.

A row of the document's tables is `| rule | what holds | sources | tests |`. Sources are paths; tests are names as
GoogleTest has them (`Suite.Name`, without the instance of a parametrized one), or `path.py::function`, or the path
of a script that is a test by itself.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
DOCUMENT = ROOT / "docs" / "semantics.md"

# Letter of a family of rules -> the numbers in it.
RULES = {
    "N": "1-4",
    "L": "1-8 10-15 20-24 30-32 40-42 50-52",
    "E": "1-5 10-12 20 30-34 40-42",
    "D": "1-3 9",
    "K": "1-5 10-12 20-21 30",
    "Q": "1-3 10-14 20-23 30-37",
    "V": "1-5 10-14 20-23 30-33",
    "S": "1-8",
    "T": "1-6",
    "Z": "1-10",
    "X": "1-7",
    "H": "1-22",
    "B": "1-11",
    "A": "1-6",
    "G": "1-4",
    "P": "1-25",
}
# Subsections on configuration, optimizer parameters, messages, load and retrieve.
CONFIGURATION = ["1.1", "1.2", "1.3", "1.4", "1.5", "1.6", "1.7", "1.8", "2.1", "2.2", "2.3", "2.4", "2.5", "4", "4.1",
                 "5.1", "5.2", "5.3"]

# Suites of each numbering; a test of another suite that bears a number bears one of the configuration's.
ENGINE_SUITES = {"EngineCases", "ServingCase"}
ENGINE_CASES = set(range(1, 141)) | {142}
CONFIGURATION_CASES = set(range(1, 91))
SHARDED_SUITES = {"ShardedCases"}
SHARDED_CASES = set(range(1, 97))

ROW = re.compile(r"^\| (\w+-[\d.]+) \|(.*)\|\s*$", re.MULTILINE)
QUOTED = re.compile(r"`([^`]+)`")
TEST = re.compile(r"^\s*TEST(?:_F|_P)?\(\s*(\w+),\s*(\w+)\)", re.MULTILINE)
NUMBER = re.compile(r"(?:^|_)Case(\d+)_|^(\d+)_")
CONFIGURATION_NUMBER = re.compile(r"(?:^|_)Config(\d+)_")


def numbers(text):
    for part in text.split():
        first, _, last = part.partition("-")
        yield from range(int(first), int(last or first) + 1)


def all_rules():
    rules = [f"{letter}-{number}" for letter, text in RULES.items() for number in numbers(text)]
    return rules + [f"C-{section}" for section in CONFIGURATION]


def gtest_names():
    """(suite, name) of every test in the tree."""
    for top in ["src", "apps", "tests", "python"]:
        for path in sorted((ROOT / top).rglob("*")):
            if path.suffix in {".cc", ".inl", ".h"}:
                yield from TEST.findall(path.read_text())


def is_test(name, tests):
    path, _, function = name.partition("::")
    if path.endswith(".py"):
        file = ROOT / path
        return file.exists() and (not function or re.search(rf"^\s*def {function}\(", file.read_text(), re.MULTILINE))
    return tuple(name.split(".", 1)) in tests


def problems_of_row(rule, rest, tests):
    cells = [cell.strip() for cell in rest.split("|")]
    if len(cells) != 3 or not cells[0]:
        yield f"{rule}: a row has a rule, what holds, sources and tests"
        return
    sources, names = QUOTED.findall(cells[1]), QUOTED.findall(cells[2])
    if not sources or not names:
        yield f"{rule}: names no {'source' if not sources else 'test'}"
    for source in sources:
        if not (ROOT / source).is_file():
            yield f"{rule}: no file {source}"
    for name in names:
        if not is_test(name, tests):
            yield f"{rule}: no test {name}"


def problems_of_document(tests):
    rows = ROW.findall(DOCUMENT.read_text())
    for rule, rest in rows:
        yield from problems_of_row(rule, rest, tests)
    found = [rule for rule, _ in rows]
    for rule in all_rules():
        if found.count(rule) != 1:
            yield f"{rule}: stands {found.count(rule)} times"
    for rule in sorted(set(found) - set(all_rules())):
        yield f"{rule}: is no rule"


def case_numbers(tests):
    """The numbers that tests bear, of the engine's cases, of the configuration's and of sharded variables'."""
    engine, configuration, sharded = set(), set(), set()
    for suite, name in tests:
        configuration |= {int(number) for number in CONFIGURATION_NUMBER.findall(name)}
        own = {int(first or second) for first, second in NUMBER.findall(name)}
        if suite in ENGINE_SUITES:
            engine |= own
        elif suite in SHARDED_SUITES:
            sharded |= own
        else:
            configuration |= own
    return engine, configuration, sharded


def problems_of_cases(tests):
    engine, configuration, sharded = case_numbers(tests)
    for what, missing in [("engine", ENGINE_CASES - engine), ("configuration", CONFIGURATION_CASES - configuration),
                          ("sharded", SHARDED_CASES - sharded)]:
        if missing:
            yield f"{what} cases without a test of their number: {' '.join(map(str, sorted(missing)))}"


def main():
    tests = set(gtest_names())
    problems = [*problems_of_document(tests), *problems_of_cases(tests)]
    for problem in problems:
        print(f"semantics: {problem}")
    print(f"semantics: {len(all_rules())} rules, {len(tests)} tests, {len(problems)} places to mend")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
