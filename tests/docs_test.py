"""What a Markdown file says of the repository holds, and comments in sources stand by themselves.

Every relative link, and every path in backticks, leads somewhere; and a block of code below a comment like
`<!-- examples/quickstart.cc -->` is that file. A comment in a source does not continue the name beside it: it
does not begin with `Of`, `That`, `Those`, `As` or `Whose`; and a caller is not `he`.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)[^)]*\)")
QUOTED = re.compile(r"`([^`\s]+)`")
SHOWN = re.compile(r"^<!-- ([\w./-]+) -->\n```\w*\n(.*?)^```", re.MULTILINE | re.DOTALL)
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
TOP = "(release|src|include|apps|testing|bench|examples|tests|cmake|docs|python|fuzz)"
PATH = re.compile(rf"^({TOP}/[\w./-]*|\./[\w-]+|[\w-]+\.md)$")

SOURCES = ("include", "src", "apps", "testing", "bench", "fuzz", "python/src", "examples", "tests")
LITERAL = re.compile(r"\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])'")
COMMENT = re.compile(r"//[/!]?<?\s*(.*)")
CONTINUES = re.compile(r"(?:of|that|those|as|whose)\b", re.IGNORECASE)
PERSON = re.compile(r"\b(?:he|his|him|himself)\b", re.IGNORECASE)


def documents():
    for path in sorted(ROOT.rglob("*.md")):
        parts = path.relative_to(ROOT).parts
        if not parts[0].startswith("build") and not any(part.startswith(".") for part in parts):
            yield path


def anchors(document):
    """The anchors that GitHub makes of the headings."""
    for heading in re.findall(r"^#+\s+(.+?)\s*$", document.read_text(), re.MULTILINE):
        yield re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def broken_link(document, link):
    if re.match(r"^[a-z]+:", link):
        return False
    path, _, anchor = link.partition("#")
    target = (document.parent / path) if path else document
    if not target.exists():
        return True
    return bool(anchor) and target.suffix == ".md" and anchor not in set(anchors(target))


def broken_path(document, name):
    name = name.rstrip("/.")
    return not any((base / name).exists() for base in (ROOT, document.parent))


def stale_blocks(text):
    """(line, file) of each block that differs from the file it shows."""
    for block in SHOWN.finditer(text):
        file = ROOT / block.group(1)
        if not file.exists() or file.read_text() != block.group(2):
            yield text.count("\n", 0, block.start()) + 1, block.group(1)


def poor_comments(source):
    """(line, rule) of each comment that continues a name or calls somebody he."""
    inside = False
    for number, line in enumerate(source.read_text().splitlines(), 1):
        # A literal becomes one of its length, so that columns stay.
        masked = LITERAL.sub(lambda text: "_" * len(text.group()), line)
        column = masked.find("//")
        comment = COMMENT.match(line[column:]) if column >= 0 else None
        if comment:
            begins = not inside or bool(masked[:column].strip())
            first = CONTINUES.match(comment.group(1))
            if first and (begins or first.group()[0].isupper()):
                yield number, f"the comment begins with '{first.group()}'"
            person = PERSON.search(comment.group(1))
            if person:
                yield number, f"the comment says '{person.group()}'"
        inside = comment is not None


def sources():
    for folder in SOURCES:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".h", ".cc", ".inl"):
                yield path


def main():
    bad = files = 0
    for document in documents():
        files += 1
        text = document.read_text()
        for number, name in stale_blocks(text):
            bad += 1
            print(f"{document.relative_to(ROOT)}:{number}: the block is not {name}")
        text = FENCE.sub(lambda block: "\n" * block.group().count("\n"), text)
        for number, line in enumerate(text.splitlines(), 1):
            names = [link for link in LINK.findall(line) if broken_link(document, link)]
            names += [name for name in QUOTED.findall(line)
                      if PATH.match(name) and broken_path(document, name)]
            for name in names:
                bad += 1
                print(f"{document.relative_to(ROOT)}:{number}: nothing at {name}")
    comments = 0
    for source in sources():
        comments += 1
        for number, rule in poor_comments(source):
            bad += 1
            print(f"{source.relative_to(ROOT)}:{number}: {rule}")
    print(f"docs: {files} documents, {comments} sources, {bad} places to mend")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
