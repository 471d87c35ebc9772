"""Parts of release/ that need no build: what a release checks, what a wheel says of its parts."""

import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "release"))

import external  # noqa: E402
import make_release  # noqa: E402
import build_wheels  # noqa: E402


class Changelog(unittest.TestCase):
    def test_the_newest_section_is_the_notes(self):
        text = "# Changelog\n\n## 1.1.0 (2026-01-31)\n\n- new\n\n### Fixed\n- a\n\n## 1.0.0 (2025-01-01)\n- old\n"
        self.assertEqual(make_release.newest_section(text), ("1.1.0 (2026-01-31)", "- new\n\n### Fixed\n- a"))
        self.assertEqual(make_release.newest_section("## Unreleased\n- x\n"), ("Unreleased", "- x"))

    def test_a_release_has_its_version_and_day(self):
        self.assertEqual(make_release.wrong_heading("1.1.0 (2026-01-31)", "1.1.0"), "")
        for heading in ("Unreleased", "1.1.0", "1.1.00 (2026-01-31)", "1x1.0 (2026-01-31)", "1.1.0 (soon)"):
            self.assertIn("must be '1.1.0 (YYYY-MM-DD)'", make_release.wrong_heading(heading, "1.1.0"))


class Sums(unittest.TestCase):
    def test_a_changed_file_is_found(self):
        with tempfile.TemporaryDirectory() as scratch:
            folder = pathlib.Path(scratch)
            (folder / "a").write_bytes(b"abc")  # its sum is an example of FIPS 180-2
            (folder / "SHA256SUMS").write_text(make_release.checksums(folder))
            self.assertEqual((folder / "SHA256SUMS").read_text(),
                             "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad  a\n")
            make_release.check_sums(folder)
            (folder / "a").write_bytes(b"abd")
            with self.assertRaises(SystemExit):
                make_release.check_sums(folder)


class Wheel(unittest.TestCase):
    def test_the_interpreters_of_a_wheel(self):
        self.assertEqual(make_release.versions_for("embertable-0.1.0-cp310-cp310-manylinux_2_28_x86_64.whl"), ["3.10"])
        self.assertEqual(make_release.versions_for("embertable-0.1.0-cp312-abi3-manylinux_2_28_x86_64.whl"), ["3.12", "3.13"])

    def test_the_version_is_that_of_the_library(self):
        version = build_wheels.version()
        self.assertRegex(version, r"^\d+\.\d+\.\d+$")
        for name in ("CMakeLists.txt", "pyproject.toml"):
            self.assertNotIn(f'"{version}"', (ROOT / name).read_text(), "the version is in one place")

    @unittest.skipUnless(shutil.which("dpkg-query"), "the parts are packages of Debian")
    def test_every_part_of_debian_has_version_and_licence(self):
        for part in external.EXTERNALS:
            if part.debian:
                self.assertRegex(external.version_of(part, {}), r"^[\d:]+\.")
                self.assertGreater(len(external.licence_text(part, {})), 200)
                for header in part.headers:
                    self.assertTrue((external.INCLUDE / header).exists(), header)

    def test_the_expression_names_every_licence(self):
        for part in external.EXTERNALS:
            self.assertIn(part.licence, external.EXPRESSION)

    def test_a_library_that_is_linked_is_a_part(self):
        found = (ROOT / "cmake/Dependencies.cmake").read_text().lower()
        names = {part.name.lower() for part in external.EXTERNALS}
        for word, name in {"cli/cli.hpp": "cli11", "fmt/format.h": "fmt", "nlohmann/json.hpp": "nlohmann-json",
                           "toml++/toml.h": "tomlplusplus", "xxhash.h": "xxhash", "zlib": "zlib", "zstd": "zstd",
                           "snappy": "snappy"}.items():
            self.assertIn(word, found)
            self.assertIn(name, names)

    def test_help_needs_nothing(self):
        for name in ("build_wheels.py", "make_release.py", "newcomer.py"):
            subprocess.run([sys.executable, ROOT / "release" / name, "--help"], check=True, capture_output=True)


if __name__ == "__main__":
    unittest.main()
