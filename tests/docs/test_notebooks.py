"""The notebooks' code runs, cell by cell, and prints what is stored in them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
RUN = """
import contextlib, io, json, linecache, sys

namespace = {"__name__": "__main__"}
printed = {}
for cell in json.load(open(sys.argv[1], encoding="utf-8"))["cells"]:
    if cell["cell_type"] == "code":
        name, text = cell["id"], "".join(cell["source"])
        linecache.cache[name] = len(text), None, text.splitlines(True), name
        with contextlib.redirect_stdout(io.StringIO()) as output:
            exec(compile(text, name, "exec"), namespace)
        printed[name] = output.getvalue()
print(json.dumps(printed))
"""


def cells(name):
    return json.loads((NOTEBOOKS / f"{name}.ipynb").read_text(encoding="utf-8"))["cells"]


def test_all_notebooks_are_tested():
    assert {path.stem for path in NOTEBOOKS.glob("*.ipynb")} == {"reading_a_gradient", "kernels"}


def test_reading_a_gradient(capsys):
    namespace: dict[str, object] = {"__name__": "__main__"}
    for cell in cells("reading_a_gradient"):
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), f"reading_a_gradient, {cell['id']}", "exec"), namespace)
    printed = capsys.readouterr().out
    assert "adjoint position(%dy: f64)" in printed
    assert "def position_gradient(" in printed
    assert "make a copy of what is read" in printed


@pytest.mark.long
def test_kernels_prints_what_is_stored():
    """In a process of its own: the notebook itself switches to the simulator if there is no device."""
    environment = {name: value for name, value in os.environ.items() if name != "NUMBA_ENABLE_CUDASIM"}
    command = [sys.executable, "-c", RUN, str(NOTEBOOKS / "kernels.ipynb")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    printed = json.loads(done.stdout)
    stored = {
        cell["id"]: "".join(line for output in cell["outputs"] for line in output["text"])
        for cell in cells("kernels")
        if cell["cell_type"] == "code"
    }
    assert stored["cell-2"] == "simulator\n"
    assert printed["cell-2"] in ("simulator\n", "device\n")
    assert printed.keys() == stored.keys()
    for name in stored.keys() - {"cell-2"}:
        assert without_comments(printed[name]) == without_comments(stored[name])


def without_comments(text):
    """Return a text without the names of the files of cells, which are others in each session."""
    return re.sub(r"  # .*", "", text)
