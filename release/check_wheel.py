"""Checks wheels without installing them: size, requirements, licences, symbols.

Usage: check_wheel.py FILE.whl...
"""

import email
import io
import json
import pathlib
import re
import subprocess
import sys
import zipfile

from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile
from elftools.elf.gnuversions import GNUVerNeedSection

MOST_BYTES = 12 * 1000 * 1000
GLIBC = (2, 28)
# Parts of the C library; all else is inside.
NEEDED = {"libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "librt.so.1", "ld-linux-x86-64.so.2"}
SCRIPT = "embertable = embertable.__main__:run"


def check(wheel):
    """Lines that each say what is wrong with a wheel."""
    wrong = []
    size = wheel.stat().st_size
    if size > MOST_BYTES:
        wrong.append(f"it has {size:,} bytes, more than {MOST_BYTES:,}")
    if "manylinux" not in wheel.name:
        wrong.append("its name does not say which systems it is for")
    with zipfile.ZipFile(wheel) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    info = next(name for name in files if name.endswith(".dist-info/METADATA")).rsplit("/", 1)[0]
    wrong += check_metadata(files, info)
    extensions = [name for name in files if re.search(r"\.so(\.|$)", name)]
    if [name.split("/")[0] for name in extensions] != ["embertable"]:
        wrong.append(f"it must have one extension, in embertable/, got {extensions}")
    for name in extensions:
        wrong += [f"{name}: {what}" for what in check_extension(files[name])]
    for name in ("embertable/__init__.py", "embertable/__init__.pyi", "embertable/py.typed"):
        if name not in files:
            wrong.append(f"{name} is missing")
    if not any(name.endswith("man1/embertable.1") for name in files):
        wrong.append("the manual page is missing")
    return wrong


def check_metadata(files, info):
    wrong = []
    metadata = email.message_from_bytes(files[f"{info}/METADATA"])
    required = metadata.get_all("Requires-Dist") or []
    if [re.match(r"[\w.-]+", one).group() for one in required] != ["numpy"]:
        wrong.append(f"NumPy must be its only requirement, got {required}")
    if SCRIPT not in files.get(f"{info}/entry_points.txt", b"").decode():
        wrong.append("the script `embertable` is missing")
    bill = json.loads(files.get(f"{info}/sboms/embertable.cdx.json", b'{"components": []}'))
    if not bill["components"]:
        wrong.append("the bill of materials is missing")
    named = metadata.get_all("License-File") or []
    for part in bill["components"]:
        path = f"{part['name']}.txt"
        if path not in named or len(files.get(f"{info}/licenses/{path}", b"")) < 200:
            wrong.append(f"the licence of {part['name']} is missing")
    if len(files.get(f"{info}/licenses/LICENSE", b"")) < 1000:
        wrong.append("the licence is missing")
    return wrong


def check_extension(content):
    wrong = []
    elf = ELFFile(io.BytesIO(content))
    for section in elf.iter_sections():
        if isinstance(section, DynamicSection):
            libraries = {tag.needed for tag in section.iter_tags() if tag.entry.d_tag == "DT_NEEDED"}
            if not libraries <= NEEDED:
                wrong.append(f"it needs {sorted(libraries - NEEDED)}")
        if isinstance(section, GNUVerNeedSection):
            wrong += check_versions(section)
    symbols = elf.get_section_by_name(".dynsym")
    exported = [symbol.name for symbol in symbols.iter_symbols() if symbol["st_shndx"] != "SHN_UNDEF" and symbol.name]
    if exported != ["PyInit__core"]:
        wrong.append(f"it must export PyInit__core alone, got {exported[:5]}, {len(exported)} in all")
    return wrong


def check_versions(section):
    """What is newer than the C library that the wheel is for."""
    wrong = []
    for library, versions in section.iter_versions():
        for version in versions:
            name, _, number = version.name.partition("_")
            if name != "GLIBC" or (number[:1].isdigit() and tuple(map(int, number.split("."))) > GLIBC):
                wrong.append(f"it needs {version.name} of {library.name}")
    return wrong


def check_stable_abi(wheel):
    """Whether a wheel with the stable ABI calls nothing else of CPython."""
    audit = pathlib.Path(sys.executable).with_name("abi3audit")
    done = subprocess.run([audit, "--strict", wheel], capture_output=True, text=True)
    return [] if done.returncode == 0 else [done.stdout + done.stderr]


def main():
    failed = False
    for path in map(pathlib.Path, sys.argv[1:]):
        wrong = check(path)
        if "-abi3-" in path.name:
            wrong += check_stable_abi(path)
        print(f"{path.name}: {path.stat().st_size:,} bytes, {'ok' if not wrong else 'WRONG'}")
        for line in wrong:
            print(f"  {line}")
        failed |= bool(wrong)
    return failed or len(sys.argv) < 2


if __name__ == "__main__":
    sys.exit(main())
