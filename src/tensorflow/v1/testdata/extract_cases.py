"""Writes interleave_cases.json and v1_configs.json here. Usage: extract_cases.py GOLDEN_FOLDER"""

import json
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent


def write(name, head, cases):
    lines = ",\n".join(json.dumps(case, separators=(",", ":")) for case in cases)
    (HERE / name).write_text('{"made_by": "%s",\n"cases": [\n%s\n]}\n' % (head, lines))


def read(name):
    return json.loads((pathlib.Path(sys.argv[1]) / name).read_text())


def main():
    given = read("interleave_cases.json")
    write("interleave_cases.json", "TensorFlow " + given["tensorflow"], given["cases"])
    configs = read("config_protos.json")["v1_configs"]
    for case in configs:
        del case["record"]  # the same as the bytes
    write("v1_configs.json", "TensorFlow 2.8.0 (v1) code on 2.21.0", configs)


if __name__ == "__main__":
    main()
