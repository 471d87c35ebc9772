"""Who may include whom: a file includes its own folder and the layers above it, never sideways or down."""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

# From the top. Folders of one line are peers.
LAYERS = [
    ["base"],
    ["config", "kernels", "plan"],
    ["input", "exchange", "table", "combine", "optimizer"],
    ["checkpoint", "wire"],
    ["formats"],
    ["sharded"],
    ["engine", "serving"],
    ["direct", "v1"],
    ["jobs", "selftest"],
]

# Programs see the public headers and what is named here.
PROGRAMS = {
    "tools": {"tools", "jobs", "selftest"},
    "bench": {"bench", "kernels", "jobs"},
    "examples": set(),
    "fuzz": {"fuzz", "base", "input", "checkpoint", "formats", "wire"},
    "python": {"python", "jobs"},
}

# Also `#define EMBERTABLE_LEVEL_BODY "optimizer/sgd.inl"`, which kernels/for_each_level.inl includes.
INCLUDE = re.compile(r'^\s*#\s*(?:include|define\s+\w+_BODY)\s+(["<])([^">]+)[">]')
STANDARD = re.compile(r"^[a-z_0-9]+$")  # <vector>, but neither <fmt/core.h> nor <unistd.h>


def allowed_folders():
    """Folder (as it is written in an include) -> folders that its files may include."""
    allowed = {"embertable": {"embertable"}}
    above = {"embertable"}
    for layer in LAYERS:
        for folder in layer:
            allowed[folder] = above | {folder}
        above = above | set(layer)
    for program, extra in PROGRAMS.items():
        allowed[program] = {"embertable"} | extra
    return allowed


def sources():
    """(path, folder) of every source under the rules."""
    for top in ["include", "src", *PROGRAMS]:
        for path in sorted((ROOT / top).rglob("*")):
            if path.suffix not in {".h", ".cc", ".inl"}:
                continue
            parts = path.relative_to(ROOT).parts
            yield path, (parts[1] if top in {"include", "src"} else top)


def offence(path, folder, bracket, target, allowed):
    """What is wrong with this include, or None."""
    if folder not in allowed:
        return f"folder '{folder}' stands in no layer; add it to tests/layers_test.py"
    if bracket == "<":
        if folder == "embertable" and not STANDARD.match(target):
            return "a public header includes the standard library and embertable/ alone"
        return None
    first = target.split("/")[0]
    if "/" not in target:
        return "write the path from src/ or include/, as in \"base/errors.h\""
    if first == "tests" and path.stem.endswith("_test"):
        return None
    if first not in allowed[folder]:
        return f"'{folder}' may include only: {', '.join(sorted(allowed[folder]))}"
    return None


def main():
    allowed = allowed_folders()
    files = bad = 0
    for path, folder in sources():
        files += 1
        for number, line in enumerate(path.read_text().splitlines(), 1):
            match = INCLUDE.match(line)
            what = match and offence(path, folder, *match.groups(), allowed)
            if what:
                bad += 1
                print(f"{path.relative_to(ROOT)}:{number}: {line.strip()}\n    {what}")
    print(f"layers: {files} files, {bad} forbidden includes")
    return 1 if bad or not files else 0


if __name__ == "__main__":
    sys.exit(main())
