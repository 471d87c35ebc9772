"""Makes a release in dist/, and tests it from the files in there alone. Uploads nothing: `./dev release`.

It takes a clean checkout whose CHANGELOG.md begins with the version that include/embertable/version.h names. The result
is a wheel for each interpreter, the source archive, notes.md, which is that section of the changelog, and SHA256SUMS.

Usage: make_release.py [--out DIR] [--draft]; a draft may have uncommitted changes and a changelog that says Unreleased
"""

import argparse
import hashlib
import pathlib
import re
import subprocess
import sys
import tempfile

import build_wheels

ROOT = build_wheels.ROOT
HEADING = re.compile(r"^## (.+)$", re.MULTILINE)


def newest_section(changelog):
    """(heading, text) of the first section of a changelog."""
    first, *rest = HEADING.finditer(changelog)
    return first.group(1), changelog[first.end():rest[0].start() if rest else len(changelog)].strip()


def wrong_heading(heading, version):
    """Why a changelog with this first heading is none of this version, or "". It must be as "1.2.3 (2026-01-31)"."""
    if re.fullmatch(re.escape(version) + r" \(\d{4}-\d{2}-\d{2}\)", heading):
        return ""
    return f"the first section of CHANGELOG.md must be '{version} (YYYY-MM-DD)', got '{heading}'"


def checksums(folder):
    """The lines of SHA256SUMS for the files of a folder."""
    return "".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n"
                   for path in sorted(folder.iterdir()) if path.is_file() and path.name != "SHA256SUMS")


def check_sums(folder):
    if (folder / "SHA256SUMS").read_text() != checksums(folder):
        raise SystemExit(f"release: the files in {folder} are not those of its SHA256SUMS")


def check_checkout(heading, version):
    changed = subprocess.run(["git", "status", "--porcelain"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    if changed:
        raise SystemExit(f"release: the checkout has changes that are not committed:\n{changed}")
    if wrong := wrong_heading(heading, version):
        raise SystemExit(f"release: {wrong}")


def test_from_files(folder):
    """Installs each wheel, and builds what the source archive is for, without a look into the checkout."""
    check_sums(folder)
    source, = folder.glob("embertable-*.tar.gz")
    with tempfile.TemporaryDirectory() as scratch:
        build_wheels.run("tar", "-xzf", source, "-C", scratch)
        unpacked, = pathlib.Path(scratch).iterdir()
        for path in sorted(folder.glob("*.whl")):
            build_wheels.try_wheel(path, unpacked)
        build_wheels.run(sys.executable, unpacked / "tests/fetch_test.py", source, "c++", "--whole")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "dist")
    parser.add_argument("--draft", action="store_true")
    arguments = parser.parse_args()
    out = arguments.out
    version = build_wheels.version()
    heading, notes = newest_section((ROOT / "CHANGELOG.md").read_text())
    if not arguments.draft:
        check_checkout(heading, version)
    out.mkdir(parents=True, exist_ok=True)
    if left := [path.name for path in out.iterdir() if not path.name.startswith("embertable-")
                and path.name not in ("SHA256SUMS", "notes.md")]:
        raise SystemExit(f"release: {out} has files that are none of a release: {left}")
    for old in out.iterdir():
        old.unlink()
    build_wheels.run(sys.executable, ROOT / "release/build_wheels.py", "--untried", "--out", out)
    site = build_wheels.environment("sdist", sys.executable, "build", "scikit-build-core>=0.10", "nanobind>=3.1,<4")
    build_wheels.run(site.parents[2] / "bin/python", "-m", "build", "--no-isolation", "--sdist", "--outdir", out, ROOT)
    (out / "notes.md").write_text(f"# Embertable {heading}\n\n{notes}\n")
    (out / "SHA256SUMS").write_text(checksums(out))
    test_from_files(out)
    print((out / "SHA256SUMS").read_text() + f"release: {version} is in {out}; nothing was uploaded")


if __name__ == "__main__":
    main()
