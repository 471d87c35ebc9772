"""Parts of release/ that need no build: what a release checks, what a wheel says of its parts.

`./dev wheel` runs it with pyelftools, which the check of a wheel needs.
"""

import importlib.util
import pathlib
import shutil
import subprocess
import sys
import tempfile
import types
import unittest
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "release"))

import external  # noqa: E402
import make_release  # noqa: E402
import build_wheels  # noqa: E402
import newcomer  # noqa: E402


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
        self.assertEqual(build_wheels.interpreters_for("embertable-0.1.0-cp310-cp310-manylinux_2_28_x86_64.whl"), ["3.10"])
        self.assertEqual(build_wheels.interpreters_for("embertable-0.1.0-cp312-abi3-manylinux_2_28_x86_64.whl"), ["3.12", "3.13"])

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

    def test_a_newcomer_asks_for_the_digests_that_every_build_has(self):
        tested = (ROOT / "tests/job_digest_test.cc").read_text()
        for job, digest in newcomer.DIGESTS.items():
            self.assertRegex(tested, rf'/{job}\.toml"\), 2\),\s+"{digest}"')

    def test_readme_says_what_its_example_prints(self):
        code, printed = newcomer.EXAMPLE.search((ROOT / "README.md").read_text()).groups()
        self.assertEqual(code, (ROOT / "python/tests/readme_example.py").read_text())
        self.assertRegex(printed, r"\A\[\[1\.[^`]*\]\]\n\Z")

    @unittest.skipUnless(shutil.which("dpkg-query"), "the parts are packages of Debian")
    def test_the_bill_names_versions_as_a_url_may(self):
        with tempfile.TemporaryDirectory() as scratch:
            sites = {name: pathlib.Path(scratch) for name in ("nanobind", "ziglang")}
            for name in sites:
                (sites[name] / f"{name}-1.2.3.dist-info").mkdir()
            components = external.bill_of_materials("0.0.1", sites)["components"]
        self.assertEqual([one["name"] for one in components], [part.name for part in external.EXTERNALS])
        for one in components:
            self.assertRegex(one["purl"], r"^pkg:(deb/debian|pypi)/[a-z0-9.-]+@[\w.:~%-]+(\?arch=source)?$")

    def test_help_needs_nothing(self):
        for name in ("build_wheels.py", "make_release.py", "newcomer.py"):
            subprocess.run([sys.executable, ROOT / "release" / name, "--help"], check=True, capture_output=True)


@unittest.skipUnless(importlib.util.find_spec("elftools"), "needs pyelftools")
class Checks(unittest.TestCase):
    def setUp(self):
        import check_wheel
        self.check = check_wheel

    def test_a_wheel_without_its_parts_is_refused(self):
        with tempfile.TemporaryDirectory() as scratch:
            wheel = pathlib.Path(scratch) / "embertable-0.1.0-cp310-cp310-linux_x86_64.whl"
            with zipfile.ZipFile(wheel, "w") as archive:
                archive.writestr("embertable-0.1.0.dist-info/METADATA", "Requires-Dist: numpy>=1.23\nRequires-Dist: scipy\n")
                archive.writestr("embertable-0.1.0.dist-info/sboms/embertable.cdx.json",
                                 '{"components": [{"name": "zlib"}]}')
            wrong = "\n".join(self.check.check(wheel))
            with zipfile.ZipFile(wheel, "w") as archive:
                archive.writestr("embertable-0.1.0.dist-info/METADATA", "Requires-Dist: numpy>=1.23\n")
            self.assertIn("the bill of materials is missing", self.check.check(wheel))
        for part in ("which systems", "one extension", "NumPy must be its only requirement", "script `embertable` is missing",
                     "licence of zlib is missing", "the licence is missing", "py.typed is missing", "manual page is missing"):
            self.assertIn(part, wrong)

    def test_an_extension_exports_its_init_function_alone(self):
        loaded = pathlib.Path("/proc/self/maps").read_text().splitlines()
        library = next(line.split()[-1] for line in loaded if "/libc.so" in line)
        wrong = "\n".join(self.check.check_extension(pathlib.Path(library).read_bytes()))
        self.assertIn("it must export PyInit__core alone, got ['", wrong)

    def test_symbols_are_of_glibc_2_28_or_older(self):
        def wrong(*versions):
            named = [types.SimpleNamespace(name=name) for name in versions]
            section = types.SimpleNamespace(iter_versions=lambda: [(types.SimpleNamespace(name="libc.so.6"), named)])
            return self.check.check_versions(section)
        self.assertEqual(wrong("GLIBC_2.2.5", "GLIBC_2.9", "GLIBC_2.28"), [])
        self.assertEqual(wrong("GLIBC_2.29"), ["it needs GLIBC_2.29 of libc.so.6"])
        self.assertEqual(wrong("GLIBCXX_3.4"), ["it needs GLIBCXX_3.4 of libc.so.6"])


if __name__ == "__main__":
    unittest.main()
