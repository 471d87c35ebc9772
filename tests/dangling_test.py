"""Compilers that know the attribute warn of ids that point into temporaries, and of nothing that is safe.

Usage: dangling_test.py
"""

import pathlib
import re
import shutil
import subprocess
import unittest

INCLUDE = pathlib.Path(__file__).resolve().parents[1] / "include"
CLANG = shutil.which("clang++") or shutil.which("clang++-14")

# Each line is a function; the number is how many temporaries it keeps.
LINES = [
    (1, "const DenseIds ids{made(), {}}; return ids.values.size();"),
    (2, "RaggedIds ids{.row_splits = made(), .values = made()}; return size_of(ids);"),
    (1, "const FloatSpan weights = std::vector<float>{1}; return weights.size();"),
    (0, "return size_of({.row_splits = made(), .values = made()});"),
    (0, "const auto ids = made(); RaggedIds kept{ids, ids}; return size_of(kept);"),
]
BEFORE = """#include <vector>
#include "embertable/batch.h"
using namespace embertable;
std::vector<int> made();
std::int64_t size_of(const RaggedIds& ids) { return ids.values.size(); }
"""


@unittest.skipUnless(CLANG, "there is no clang, whose attribute it is")
class Dangling(unittest.TestCase):
    def test_ids_that_outlive_their_vectors(self):
        functions = [f"std::int64_t call{i}() {{ {body} }}\n" for i, (_, body) in enumerate(LINES)]
        done = subprocess.run([CLANG, "-std=c++20", f"-I{INCLUDE}", "-fsyntax-only", "-Wdangling", "-x", "c++", "-"],
                              input=BEFORE + "".join(functions), capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        first = BEFORE.count("\n") + 1
        warned = [int(line) - first for line in re.findall(r":(\d+):\d+: warning: .*-Wdangling", done.stderr)]
        for i, (expected, body) in enumerate(LINES):
            self.assertEqual(warned.count(i), expected, body)


if __name__ == "__main__":
    unittest.main()
