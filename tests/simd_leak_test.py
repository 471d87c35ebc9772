"""No wide instruction outside the namespaces made for it: an old CPU runs everything else.

Usage: simd_leak_test.py FILE...   Reads the machine code of archives and objects with objdump.
"""

import re
import subprocess
import sys

# A symbol may hold wide code if a namespace of its mangled name, or of a template argument's, is a level's.
LEVELS = ("4avx2", "6avx512")

SYMBOL = re.compile(r"^[0-9a-f]+ <(.+)>:$")
# AVX and its kin start with `v`; then AVX-512's masks and the BMI that comes with AVX2. (`tzcnt` is how objdump
# spells the old `rep bsf`.)
WIDE = re.compile(r"v|k[a-z]+[bwdq]\b|andn\b|bextr|bls[imr]|bzhi|lzcnt|mulx|pdep|pext|rorx|(sar|shl|shr)x")


def wide_symbols(file):
    """Mangled symbol -> its first wide instruction."""
    found = {}
    symbol = ""
    listing = subprocess.run(["objdump", "--disassemble", "--no-show-raw-insn", file],
                             stdout=subprocess.PIPE, text=True, check=True)
    for line in listing.stdout.splitlines():
        address, tab, instruction = line.partition("\t")
        if not tab:
            match = SYMBOL.match(address)
            symbol = match.group(1) if match else symbol
        elif WIDE.match(instruction):
            found.setdefault(symbol, instruction.strip())
    return found


def main():
    leaks = levels = 0
    for file in sys.argv[1:]:
        for symbol, instruction in wide_symbols(file).items():
            if any(level in symbol for level in LEVELS):
                levels += 1
                continue
            leaks += 1
            name = subprocess.run(["c++filt", symbol], stdout=subprocess.PIPE, text=True).stdout.strip()
            print(f"{file}: {name}: {instruction}")
    print(f"simd: {levels} wide functions in their namespaces, {leaks} outside")
    return 1 if leaks or not levels else 0  # none at all: objdump was not understood


if __name__ == "__main__":
    sys.exit(main())
