"""Phrases to avoid in documentation, docstrings, comments and messages, and a count of them.

    python -m tests.prose                   a table: phrases by area
    python -m tests.prose PATH...           each hit under these files or folders, as file:line: phrase: text
    python -m tests.prose --phrase NAME     each hit of one phrase

`tests/docs/test_prose.py` fails on a hit under one of the paths in `FINISHED`. Add a folder when its text has been
revised.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md")]
PAGES += sorted((ROOT / "docs").glob("*.md"))
PACKAGES = [ROOT / name for name in ("zygote_py", "adjoints", "ir")]
OTHER_CODE = [ROOT / name for name in ("benchmarks", "tests")]  # their strings are data, not messages

FINISHED = [
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "docs",
    "zygote_py",
    "adjoints",
    "ir",
    "benchmarks",
    "tests",
]


class Area(Enum):
    """Kinds of text."""

    PAGE = "pages"
    DOCSTRING = "docstrings"
    COMMENT = "comments"
    MESSAGE = "messages"


@dataclass(frozen=True)
class Phrase:
    """A phrase to avoid.

    Attributes
    ----------
    name : str
        Its name in reports.
    pattern : str
        A regular expression. Code in backquotes is replaced by `x` before it is applied.
    instead : str
        What to write.
    only : Area or None
        The kind of text to which it applies; by default all of them.
    """

    name: str
    pattern: str
    instead: str
    only: Area | None = None


PHRASES = [
    Phrase("starts with What", r"\AWhat ", "a noun, or a verb: Return the ...", Area.DOCSTRING),
    Phrase("starts with Give", r"\AGives? ", "Return ...", Area.DOCSTRING),
    Phrase("nobody", r"\b(?:[Nn]|[Ss]ome|[Ee]very)(?:o?body)\b|\b[Ww]hoever\b", "no one, callers, the passive"),
    Phrase("by hand", r"\bby hand\b", "hand-written, manually"),
    Phrase(
        "is no X",
        r"(?<!\b[Tt]here )\b(?:is|are|was|were) (?:no (?!longer\b|more\b|less\b|fewer\b|one\b)\w|none\b)",
        "is not a(n) X",
    ),
    Phrase(
        "what f captures",
        r"\b[Ww]hat (?:\S+ ){1,4}?captures?\b|\b[Ww]hat is captured\b",
        "captured variables",
    ),
    Phrase("a place of its own", r"\ba place of (?:its|their) own\b", "its own slot, passed by position"),
    Phrase("behind", r"\bbehind\b", "after, following, underlying"),
    Phrase("of one's own", r"\bof (?:one's|the user's|my|your) own\b", "custom, user-defined"),
    Phrase(
        "we", r"\b(?:for|to|but|than|by|from|of|with) us\b|\b[Oo]urs\b(?! : )|\b[Ww]e\b", "the compiler, this package"
    ),
    Phrase(
        "comes to",
        r"\bcomes? to (?:it|that|its|the|this|one|a|an|what)\b|\bcome to\b(?! an end)",
        "reaches, resolves to, evaluates to",
    ),
    Phrase(
        "sections with colons",
        r"^\s*(?:Parameters|Returns|Raises|Examples?|Source|Attributes|Notes?|Yields):\s*$",
        "NumPy sections, underlined",
        Area.DOCSTRING,
    ),
]


@dataclass(frozen=True)
class Text:
    """A piece of text and its location."""

    path: Path
    line: int
    area: Area
    text: str


@dataclass(frozen=True)
class Hit:
    """An occurrence of a phrase."""

    phrase: Phrase
    text: Text
    excerpt: str

    def __str__(self) -> str:
        where = f"{self.text.path.relative_to(ROOT)}:{self.text.line}"
        return f"{where}: {self.phrase.name}: {self.excerpt!r} (write: {self.phrase.instead})"


def paragraphs(path: Path) -> Iterator[Text]:
    """Yield the paragraphs, items, headings and rows of a Markdown page, without its code."""
    lines: list[str] = []
    start, is_code = 1, False
    for number, line in enumerate([*path.read_text("utf-8").splitlines(), ""], 1):
        is_fence = line.startswith("```")
        is_code ^= is_fence
        is_indented = line.startswith("    ") and not lines
        begins = not line.strip() or line.startswith(("|", "* ", "- ", "#")) or re.match(r"\d+\. ", line)
        if lines and (is_fence or begins):
            yield Text(path, start, Area.PAGE, " ".join(lines))
            lines = []
        if not (is_fence or is_code or is_indented) and line.strip():
            start = start if lines else number
            lines.append(line.strip())


# A tokenizer takes as long as all else in this check.
_STRING_OR_COMMENT = re.compile(
    r"""\"{3}(?:\\.|[^\\])*?\"{3}|'{3}(?:\\.|[^\\])*?'{3}|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|\#[^\n]*""", re.DOTALL
)


def python_texts(path: Path, has_messages: bool) -> Iterator[Text]:
    """Yield the docstrings, comments and, if it `has_messages`, the longer strings of a Python file."""
    source = path.read_text("utf-8")
    tree = ast.parse(source)
    skipped: set[ast.AST] = set()
    for node in ast.walk(tree) if has_messages else _statements(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and (docstring := ast.get_docstring(node)):
            literal = node.body[0]
            assert isinstance(literal, ast.Expr)
            skipped.add(literal.value)
            yield Text(path, literal.lineno, Area.DOCSTRING, without_examples(docstring))
        if isinstance(node, ast.JoinedStr):
            skipped.update(node.values)
            if has_messages:
                parts = [value.value if isinstance(value, ast.Constant) else "x" for value in node.values]
                yield Text(path, node.lineno, Area.MESSAGE, "".join(map(str, parts)))
        is_text = isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in skipped
        if has_messages and is_text and len(node.value.split()) >= 3:
            yield Text(path, node.lineno, Area.MESSAGE, node.value)
    for found in _STRING_OR_COMMENT.finditer(source):
        if found[0].startswith("#"):
            yield Text(path, source.count("\n", 0, found.start()) + 1, Area.COMMENT, found[0].lstrip("# "))


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    """Yield a node and the statements in it."""
    yield node
    for name in ("body", "orelse", "handlers", "finalbody"):
        inner = getattr(node, name, ())
        for each in inner if isinstance(inner, list) else ():
            yield from _statements(each)


def without_examples(docstring: str) -> str:
    """Return a docstring without its interactive examples."""
    return re.sub(r"^ *>>> .*?(?:\n\s*\n|\Z)", "", docstring, flags=re.MULTILINE | re.DOTALL)


def texts() -> Iterator[Text]:
    """Yield the text of the pages and the code of this checkout."""
    for page in PAGES:
        yield from paragraphs(page)
    for folder in PACKAGES + OTHER_CODE:
        for path in sorted(folder.rglob("*.py")):
            yield from python_texts(path, folder in PACKAGES)


def hits() -> Iterator[Hit]:
    """Yield the phrases to avoid that occur in this checkout."""
    for text in texts():
        masked = re.sub(r"(`+)[^`]*\1", "x", text.text)
        for phrase in PHRASES:
            if phrase.only not in (None, text.area):
                continue
            for match in re.finditer(phrase.pattern, masked, re.MULTILINE):
                excerpt = masked[max(0, match.start() - 30) : match.end() + 30]
                yield Hit(phrase, text, " ".join(excerpt.split()))


def is_under(path: Path, names: list[str]) -> bool:
    """Return whether a path is one of the files, or in one of the folders, that `names` gives from the root."""
    return any(path.is_relative_to((ROOT / name).resolve()) for name in names)


def main(arguments: list[str]) -> None:
    """Print the counts of all phrases, or the hits that the arguments select."""
    parser = argparse.ArgumentParser(prog="python -m tests.prose", description="Count phrases to avoid.")
    parser.add_argument("paths", nargs="*", help="files and folders whose hits are printed")
    parser.add_argument("--phrase", help="print the hits of one phrase", choices=[phrase.name for phrase in PHRASES])
    options = parser.parse_args(arguments)
    if options.paths or options.phrase:
        for hit in hits():
            is_wanted = options.phrase in (None, hit.phrase.name)
            if is_wanted and (not options.paths or is_under(hit.text.path, options.paths)):
                print(hit)
        return
    counts = Counter((hit.phrase.name, hit.text.area) for hit in hits())
    print(f"{'':22}", *(f"{area.value:>11}" for area in Area))
    for phrase in PHRASES:
        print(f"{phrase.name:22}", *(f"{counts[phrase.name, area]:11}" for area in Area), f"  -> {phrase.instead}")


if __name__ == "__main__":
    main(sys.argv[1:])
