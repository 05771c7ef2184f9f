"""The examples of the pages in docs/ print what their comments say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
EXAMPLES = [
    (page.name, example)
    for page in sorted(DOCS.glob("*.md"))
    for example in re.findall(r"```python\n(.*?)```", page.read_text("utf-8"), re.DOTALL)
]


@pytest.mark.parametrize(("page", "example"), EXAMPLES, ids=lambda text: text if text.endswith(".md") else "")
def test_examples(page: str, example: str, capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(example, page, "exec"), {})
    printed = capsys.readouterr().out.splitlines()
    assert printed == re.findall(r"^print\(.*\)\s+# (.*)$", example, re.MULTILINE)
    assert printed
