"""Extracts what lookups and gradients give. Usage: extract_cases.py CASES > lookup_cases.json"""

import json
import sys

KEPT = ["id", "container", "features", "inputs", "weights", "missing_tables", "upstream", "gradients"]


def answer(case):
    """Ours where it differs on purpose from TensorFlow's."""
    source = case.get("embertable", case)
    return {key: source[key] for key in ["results", "error"] if key in source}


def main():
    with open(sys.argv[1]) as file:
        given = json.load(file)
    print('{"tensorflow": "%s", "tolerance": %s,' % (given["tensorflow"], json.dumps(given["tolerance"])))
    print('"tables": %s,' % json.dumps(given["tables"], separators=(",", ":")))
    print('"cases": [')
    lines = []
    for case in given["cases"]:
        kept = {key: case[key] for key in KEPT if key in case}
        if "v0" in case:
            kept["v0"] = answer(case["v0"])
        lines.append(json.dumps({**kept, **answer(case)}, separators=(",", ":")))
    print(",\n".join(lines))
    print("]}")


if __name__ == "__main__":
    main()
