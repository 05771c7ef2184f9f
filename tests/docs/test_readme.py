"""The README is true: its Python examples print what their comments say, its commands print what stands under them.

A `console` block is a transcript: `$ cat FILE` gives a file, `$ zygote-py ...` is run among the files so given.
`pytest --update-golden` writes the output of the commands into the README anew.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from zygote_py.cli import commands as cli

README = Path(__file__).parents[2] / "README.md"
TEXT = README.read_text("utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
TRANSCRIPTS = re.findall(r"```console\n(.*?)```", TEXT, re.DOTALL)


def commands(transcript: str) -> list[tuple[str, str]]:
    """The commands of a transcript, each with what stands under it."""
    _, *parts = re.split(r"^\$ ", transcript, flags=re.MULTILINE)
    return [(command, output) for command, _, output in (part.partition("\n") for part in parts)]


@pytest.mark.parametrize("example", EXAMPLES, ids=range(len(EXAMPLES)))
def test_python_examples_print_what_their_comments_say(example, capsys):
    exec(compile(example, "README.md", "exec"), {})
    printed = capsys.readouterr().out.splitlines()
    expected = re.findall(r"^print\(.*\)\s+# (.*)$", example, re.MULTILINE)
    assert len(printed) == len(expected) > 0
    for line, comment in zip(printed, expected, strict=True):
        start, dots, _ = comment.partition("...")
        assert line.startswith(start) if dots else line == comment


def test_commands_print_what_stands_under_them(request, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    readme = TEXT
    for command, output in (pair for transcript in TRANSCRIPTS for pair in commands(transcript)):
        program, *arguments = shlex.split(command)
        if program == "cat":
            Path(arguments[0]).write_text(output.rstrip("\n") + "\n")
            continue
        assert program == "zygote-py"
        cli.main(arguments)
        printed = "".join(capsys.readouterr()).replace(f"{tmp_path}/", "")
        if request.config.getoption("--update-golden"):
            readme = readme.replace(f"$ {command}\n{output}", f"$ {command}\n{printed}")
        else:
            assert output == printed, command
    if readme != TEXT:
        README.write_text(readme, "utf-8")


def test_there_is_something_to_test():
    assert len(EXAMPLES) >= 2
    assert sum(len(commands(transcript)) for transcript in TRANSCRIPTS) >= 4
