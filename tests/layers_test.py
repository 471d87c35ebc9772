"""Who may include whom.

This is the one table of layers: a file includes its own folder, lower layers of src/ and the public headers. No two
folders include each other, and no folder has more files than a reader can take in.

    layers_test.py           checks every #include, the number of files and the table in ARCHITECTURE.md
    layers_test.py --table   prints that table
"""

import collections
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

# Folders of include/. Each may include those before it.
PUBLIC = [
    ("embertable", "what a user reads first: engine, serving, configuration, optimizers, checkpoints, errors"),
    ("embertable/variables", "tensors, sharded variables, partitioners, their lookups and checkpoints"),
    ("embertable/tensorflow", "compatibility: v1, messages, tensor bundles, interleaving, step descriptors"),
]

# Folders of src/, the lowest layer first. Each may include all layers before its own, and no peer.
LAYERS = [
    [("base", "memory, float environment, counter-based randomness, `exp` and `log`, hashing, thread pool")],
    [("kernels", "arithmetic on plain memory, at every SIMD level"),
     ("config", "checked configuration values"),
     ("rows", "rows at rest: who owns a row, shards, the lookup plans that both directions of a step read")],
    [("input", "ids on their way in: checked, narrowed, counted"),
     ("kernels/gather", "sums of rows of every storage type, at every SIMD level"),
     ("optimizer", "what each rule offers, the registry, sums of gradients"),
     ("exchange", "messages between hosts")],
    [("optimizer/rules", "one rule: its name, parameters, slots and formula"),
     ("step", "forward and backward of one step on given tables: no queues, no files")],
    [("checkpoint", "tables in files")],
    [("tensor", "dense tensors, their indices and operators")],
    [("variable", "tensors kept as blocks of rows: values, lookups, checkpoints")],
    [("engine/schedule", "the order of a program's calls: queued steps, waits, threads that meet")],
    [("engine/setup", "the configuration of one engine, checked and resolved, and the hosts that must share it")],
    [("engine/intake", "a program's batches: checked, their shapes known, read into a step")],
    [("engine", "the whole road of a batch")],
    [("serving", "lookups without an engine, and direct steps on what they looked up")],
    [("tensorflow/wire", "configurations as messages of TensorFlow's protos"),
     ("tensorflow/bundle", "TensorFlow's tensor bundle"),
     ("tensorflow/v1", "the first generation's TPUEmbedding")],
]

# What stands on the library -> what it is, and which folders it may include besides its own and the public headers.
PROGRAMS = {
    "apps/convert": ("tables from and to files of other libraries", "base input checkpoint tensorflow/bundle"),
    "apps/jobs/text": ("reading of text: lines, tokens, CSV", "base apps/convert"),
    "apps/jobs/keys": ("keys of the data and their rows", "base input apps/jobs/text"),
    "apps/jobs/spec": ("what a job file says; what a model and a predictor are", "base checkpoint apps/convert apps/jobs/text"),
    "apps/jobs/data": ("data sets of records, histories and words",
                       "base kernels input apps/convert apps/jobs/text apps/jobs/keys apps/jobs/spec"),
    "apps/jobs/math": ("dense arithmetic, metrics, sampling",
                       "base kernels apps/jobs/text apps/jobs/spec apps/jobs/data"),
    "apps/jobs/models": ("the models and their predictors",
                         "base kernels apps/convert apps/jobs/spec apps/jobs/data apps/jobs/math"),
    "apps/jobs/run": ("training, evaluation, prediction, reports",
                      "base exchange checkpoint apps/convert apps/jobs/text apps/jobs/keys apps/jobs/spec apps/jobs/data "
                      "apps/jobs/math apps/jobs/models"),
    "apps/jobs/sweep": ("a job trained with many settings",
                        "base apps/jobs/spec apps/jobs/data apps/jobs/run"),
    "apps/selftest": ("every rule and combiner beside published vectors and a reference in double",
                      "base kernels optimizer"),
    "apps/doctor": ("what of this machine, its limits and a folder is good for runs, and what to change",
                    "base kernels exchange checkpoint"),
    "apps/cli": ("the command line",
                 "base apps/convert apps/jobs/spec apps/jobs/data apps/jobs/run apps/jobs/sweep apps/doctor apps/selftest"),
    "python": ("the Python package",
               "base exchange apps/convert apps/jobs/spec apps/jobs/run apps/jobs/sweep apps/doctor apps/cli"),
    "bench": ("the benchmarks", "base kernels apps/convert apps/jobs/keys apps/jobs/data apps/jobs/run"),
    "examples": ("programs to copy", ""),
    "fuzz": ("fuzz targets", "base input checkpoint tensorflow/wire tensorflow/bundle apps/convert apps/jobs/run testing"),
}

# Used by tests alone, which may also include their whole program.
TESTING = "testing"

MOST_FILES = 60

# Also `#define EMBERTABLE_LEVEL_BODY "optimizer/formula.inl"`, which kernels/for_each_level.inl includes.
INCLUDE = re.compile(r'^\s*#\s*(?:include|define\s+\w+_BODY)\s+(["<])([^">]+)[">]', re.MULTILINE)
STANDARD = re.compile(r"^[a-z_0-9]+$")  # <vector>, but neither <fmt/core.h> nor <unistd.h>
TOPS = ["include", "src", "apps", TESTING, "bench", "examples", "fuzz", "python"]
TABLE_BEGINS, TABLE_ENDS = "<!-- tests/layers_test.py --table -->\n", "<!-- end of the table -->\n"


def allowed_folders():
    """Folder (as it is written in an include) -> folders that its files may include."""
    allowed = {}
    public = []
    for folder, _ in PUBLIC:
        public.append(folder)
        allowed[folder] = set(public)
    lower = set(public)
    for layer in LAYERS:
        for folder, _ in layer:
            allowed[folder] = lower | {folder}
        lower = lower | {folder for folder, _ in layer}
    for program, (_, extra) in PROGRAMS.items():
        allowed[program] = {*public, program, *extra.split()}
    allowed[TESTING] = set(allowed) | {TESTING}
    return allowed


def folder_of(path, allowed):
    """The deepest folder of the table that a path lies in; `path` is written as in an include."""
    parts = path.split("/")[:-1]
    for size in range(len(parts), 0, -1):
        folder = "/".join(parts[:size])
        if folder in allowed:
            return folder
    return None


def included_as(path):
    """A path of the tree as an include writes it."""
    top, _, rest = path.partition("/")
    return rest if top in {"include", "src"} else path


def sources():
    for top in TOPS:
        for path in sorted((ROOT / top).rglob("*")):
            if path.suffix in {".h", ".cc", ".inl"}:
                yield path


def is_test(path):
    return "_test." in path or path.startswith(TESTING + "/")


def may_include(path, folder, allowed):
    """Folders that this file may include."""
    if not is_test(path):
        return allowed[folder]
    whole = {other for other in allowed if folder.count("/") > 1 and other.startswith(folder.rsplit("/", 1)[0] + "/")}
    return allowed[folder] | whole | {TESTING}


def offence(path, folder, bracket, target, allowed):
    """What is wrong with this include, or None."""
    if folder is None:
        return "this folder stands in no layer; add it to tests/layers_test.py"
    public = folder.split("/")[0] == "embertable"
    if bracket == "<":
        if public and not STANDARD.match(target):
            return "a public header includes the standard library and embertable/ alone"
        return None
    if "/" not in target:
        return 'write the path from src/, include/ or the root, as in "base/errors.h"'
    other = folder_of(target, allowed)
    permitted = may_include(path, folder, allowed)
    if other not in permitted:
        return f"'{folder}' may include only: {', '.join(sorted(permitted))}"
    return None


def forbidden_includes(allowed):
    """(what is wrong) of includes, and the arrows between real folders, tests apart."""
    arrows = collections.defaultdict(set)
    problems = []
    files = 0
    for file in sources():
        files += 1
        path = file.relative_to(ROOT).as_posix()
        here = included_as(path)
        folder = folder_of(here, allowed)
        text = file.read_text()
        for match in INCLUDE.finditer(text):
            what = offence(path, folder, *match.groups(), allowed)
            if what:
                line = text.count("\n", 0, match.start(1)) + 1
                problems.append(f"{path}:{line}: {match.group().strip()}\n    {what}")
            if match.group(1) == '"' and not is_test(path):
                arrows[here.rpartition("/")[0]].add(match.group(2).rpartition("/")[0])
    for folder in sorted(arrows):
        for other in sorted(arrows[folder]):
            if folder < other and folder in arrows[other]:
                problems.append(f"{folder} and {other} include each other")
    return files, problems


def crowded_folders():
    for top in [*TOPS, "tests"]:
        for folder in [ROOT / top, *sorted((ROOT / top).rglob("*"))]:
            if not folder.is_dir():
                continue
            name = folder.relative_to(ROOT).as_posix()
            count = sum(child.is_file() for child in folder.iterdir())
            if "__pycache__" not in name and count > MOST_FILES:
                yield f"{name}: {count} files, {MOST_FILES} at most; give subjects folders of their own"


def table():
    """The layers as Markdown."""
    lines = ["| layer | folder | what is there | what it may include besides public headers |", "|---|---|---|---|"]
    for folder, what in PUBLIC:
        lines.append(f"| public | `include/{folder}` | {what} | those above, and the standard library |")
    for number, layer in enumerate(LAYERS, 1):
        lower = f"layers 1 to {number - 1}" if number > 2 else "layer 1" if number == 2 else "nothing"
        for folder, what in layer:
            lines.append(f"| {number} | `src/{folder}` | {what} | {lower} |")
    sourced = {folder for layer in LAYERS for folder, _ in layer}
    for program, (what, extra) in PROGRAMS.items():
        names = [f"`src/{name}`" if name in sourced else f"`{name}`" for name in extra.split()]
        lines.append(f"| program | `{program}` | {what} | {', '.join(names) or 'nothing'} |")
    lines.append(f"| tests | `{TESTING}` | support of tests | everything |")
    return "".join(line + "\n" for line in lines)


def stale_table():
    """Where ARCHITECTURE.md shows the table, it is this one."""
    text = (ROOT / "ARCHITECTURE.md").read_text()
    if TABLE_BEGINS in text:
        shown = text.split(TABLE_BEGINS)[1].split(TABLE_ENDS)[0].strip("\n") + "\n"
        if shown != table():
            yield "ARCHITECTURE.md: the table of layers is not what `tests/layers_test.py --table` prints"


def main():
    if sys.argv[1:] == ["--table"]:
        print(table(), end="")
        return 0
    files, problems = forbidden_includes(allowed_folders())
    problems += [*crowded_folders(), *stale_table()]
    for problem in problems:
        print(problem)
    print(f"layers: {files} files, {len(problems)} places to mend")
    return 1 if problems or not files else 0


if __name__ == "__main__":
    sys.exit(main())
