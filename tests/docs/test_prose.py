"""Documentation, docstrings, comments and messages: phrases to avoid, and references to files."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.prose import FINISHED, OTHER_CODE, PACKAGES, PAGES, PHRASES, ROOT, hits, is_under, paragraphs, python_texts

FILES = {
    str(path.relative_to(ROOT))
    for path in [*PAGES, *(path for folder in PACKAGES + OTHER_CODE for path in folder.rglob("*.py"))]
}


def test_finished_text_has_no_phrases_to_avoid():
    assert not [str(hit) for hit in hits() if is_under(hit.text.path, FINISHED)]


def test_finished_paths_exist():
    assert not [name for name in FINISHED if not (ROOT / name).exists()]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("What a call gives.", "starts with What"),
        ("Give the index of the first.", "starts with Give"),
        ("Everybody reads it.", "nobody"),
        ("A gradient written by hand.", "by hand"),
        ("This is no parameter of `f`.", "is no X"),
        ("Read what the function captures.", "what f captures"),
        ("The seconds come behind the first.", "behind"),
        ("A rule of your own.", "of one's own"),
        ("Typed for us.", "we"),
        ("f does not come to its rule", "comes to"),
        ("Return it.\n\nReturns:\n    It.\n", "sections with colons"),
    ],
)
def test_phrases_are_found(tmp_path: Path, text: str, name: str):
    path = tmp_path / "module.py"
    path.write_text(f'"""{text}"""\n')
    (phrase,) = (phrase for phrase in PHRASES if phrase.name == name)
    (docstring,) = python_texts(path, has_messages=True)
    assert re.search(phrase.pattern, docstring.text, re.MULTILINE)


def test_code_of_pages_is_not_text(tmp_path: Path):
    page = tmp_path / "page.md"
    page.write_text("# Title\n\nOne,\nand two.\n\n    by hand\n\n```python\nby_hand()\n```\n* item\n* item\n")
    assert [(text.line, text.text) for text in paragraphs(page)] == [
        (1, "# Title"),
        (3, "One, and two."),
        (11, "* item"),
        (12, "* item"),
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages_name_existing_files(page: Path):
    text = page.read_text("utf-8")
    assert not [link for link in re.findall(r"\]\(([^)#:]+)\)", text) if not (page.parent / link).exists()]
    named = re.findall(r"`([\w/]+\.(?:py|md))`", text)
    assert not [name for name in named if not any(f"/{file}".endswith(f"/{name}") for file in FILES)]
