"""What becomes a part of the wheel besides Embertable: names, licences, versions, where they come from.

Headers and sources are Debian's packages of them, whose versions are those that are installed here; the rest comes from
packages of Python.
"""

import dataclasses
import pathlib
import re
import shutil
import subprocess
import urllib.parse

INCLUDE = pathlib.Path("/usr/include")


@dataclasses.dataclass(frozen=True)
class External:
    name: str
    licence: str  # SPDX
    debian: str = ""  # package with the headers
    headers: tuple[str, ...] = ()  # in /usr/include; empty: built from the sources of the package
    python: str = ""  # package of Python
    text: str = ""  # file with the licence, in the package of Python; "": where its metadata keep it


EXTERNALS = [
    External("CLI11", "BSD-3-Clause", "libcli11-dev", ("CLI",)),
    External("fmt", "MIT", "libfmt-dev", ("fmt",)),
    External("nlohmann-json", "MIT", "nlohmann-json3-dev", ("nlohmann",)),
    External("protozero", "BSD-2-Clause", "libprotozero-dev", ("protozero",)),
    External("tomlplusplus", "MIT", "libtomlplusplus-dev", ("toml++",)),
    External("xxhash", "BSD-2-Clause", "libxxhash-dev", ("xxhash.h",)),
    External("snappy", "BSD-3-Clause", "libsnappy-dev"),
    External("zlib", "Zlib", "zlib1g-dev"),
    External("zstd", "BSD-3-Clause", "libzstd-dev"),
    External("nanobind", "BSD-3-Clause", python="nanobind"),
    External("robin-map", "MIT", python="nanobind", text="nanobind/ext/robin_map/include/tsl/robin_map.h"),
    External("libc++", "Apache-2.0 WITH LLVM-exception", python="ziglang", text="ziglang/lib/libcxx/LICENSE.TXT"),
    External("libc++abi", "Apache-2.0 WITH LLVM-exception", python="ziglang", text="ziglang/lib/libcxxabi/LICENSE.TXT"),
    External("libunwind", "Apache-2.0 WITH LLVM-exception", python="ziglang", text="ziglang/lib/libunwind/LICENSE.TXT"),
    External("zig-compiler-rt", "MIT", python="ziglang", text="ziglang/LICENSE"),
]

# The licences of all parts, as the metadata of the wheel say it.
EXPRESSION = " AND ".join(["Apache-2.0"] + sorted({part.licence for part in EXTERNALS}))


def built():
    """Those that are compiled from their sources."""
    return [part for part in EXTERNALS if part.debian and not part.headers]


def debian(field, package):
    """A field of an installed package of Debian, such as Version."""
    return subprocess.run(["dpkg-query", "-W", f"-f=${{{field}}}", package], check=True, capture_output=True,
                          text=True).stdout


def metadata_of(sites, package):
    """(version, folder of the metadata) of a package of Python. `sites`: package -> the folder that it is in."""
    folder, = sites[package].glob(f"{package}-*.dist-info")
    return folder.name.removesuffix(".dist-info").split("-", 1)[1], folder


def version_of(part, sites):
    return debian("Version", part.debian) if part.debian else metadata_of(sites, part.python)[0]


def licence_text(part, sites):
    if part.debian:
        return pathlib.Path(f"/usr/share/doc/{part.debian}/copyright").read_text()
    if part.text.endswith(".h"):  # its first comment
        return re.search(r"/\*.*?\*/", (sites[part.python] / part.text).read_text(), re.DOTALL).group()
    if part.text:
        return (sites[part.python] / part.text).read_text()
    _, folder = metadata_of(sites, part.python)
    return "\n".join(path.read_text() for path in sorted(folder.rglob("LICENSE*")) if path.is_file())


def copy_headers(prefix):
    """Copies headers to a folder of their own: the compiler must not see those of Debian's C library."""
    for part in EXTERNALS:
        for name in part.headers:
            source, target = INCLUDE / name, prefix / "include" / name
            if source.is_dir():
                shutil.copytree(source, target, dirs_exist_ok=True)
            else:
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(source, target)


def source_lines():
    """Lines by which apt finds Debian's sources, one for each suite that packages are installed from."""
    targets = subprocess.run(["apt-get", "indextargets", "--format", "$(REPO_URI) $(RELEASE) $(COMPONENT) $(SIGNED_BY)",
                              "Identifier: Packages"], check=True, capture_output=True, text=True).stdout
    lines = set()
    for target in targets.splitlines():
        uri, release, component, *key = target.split()
        if component == "main" and "debian" in uri:
            signed = f" [signed-by={key[0]}]" if key and key[0].startswith("/") else ""
            lines.add(f"deb-src{signed} {uri} {release} main\n")
    return sorted(lines, key=lambda line: ("-" in line.split()[-2], line))  # updates after the release


def download(name, version, folder):
    """Downloads the sources of a package in this version into a folder, from the first suite that has them."""
    for number, line in enumerate(source_lines()):
        state = folder / f"suite{number}"
        (state / "lists/partial").mkdir(parents=True, exist_ok=True)
        (state / "sources.list").write_text(line)
        apt = ["apt-get", "-qq", "-o", f"Dir::Etc::sourcelist={state}/sources.list", "-o", "Dir::Etc::sourceparts=/dev/null",
               "-o", f"Dir::State::lists={state}/lists", "-o", "APT::Sandbox::User=root"]
        if not any((state / "lists").glob("*Sources*")):
            subprocess.run([*apt, "update"], check=True)
        if subprocess.run([*apt, "source", "--download-only", f"{name}={version}"], cwd=folder).returncode == 0:
            return
    raise SystemExit(f"wheel: no suite of Debian has the sources of {name} {version}; `apt-get update` and upgrade may help")


def fetch_sources(folder):
    """Name -> unpacked sources of Debian, of the same versions as the headers that are installed."""
    folder.mkdir(parents=True, exist_ok=True)
    found = {}
    for part in built():
        name, version = debian("source:Package", part.debian), debian("source:Version", part.debian)
        target = folder / f"{part.name}-{version.replace(':', '_')}"
        if not target.exists():
            download(name, version, folder)
            description = folder / f"{name}_{version.split(':')[-1]}.dsc"
            subprocess.run(["dpkg-source", "-q", "-x", description, target], check=True, cwd=folder, stderr=subprocess.DEVNULL)
        found[part.name] = target
    return found


def bill_of_materials(version, sites):
    """The parts as CycloneDX has them."""
    def component(part):
        number = version_of(part, sites)
        quoted = urllib.parse.quote(number, safe=":")
        url = f"pkg:deb/debian/{debian('source:Package', part.debian)}@{quoted}?arch=source" if part.debian else \
            f"pkg:pypi/{part.python}@{quoted}"
        licence = {"expression": part.licence} if " WITH " in part.licence else {"license": {"id": part.licence}}
        return {"type": "library", "name": part.name, "version": number, "purl": url, "licenses": [licence]}

    return {
        "bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1,
        "metadata": {"component": {"type": "library", "name": "embertable", "version": version,
                                   "purl": f"pkg:pypi/embertable@{version}",
                                   "licenses": [{"license": {"id": "Apache-2.0"}}]}},
        "components": [component(part) for part in EXTERNALS],
    }
