"""Golden texts: `golden(name, text)` compares a text with `tests/golden/NAME.txt`; how `-n` deals out the tests.

    def test_pow(golden):
        golden("pow", text(pow_primal()))

`pytest --update-golden` writes the files instead; review what changed as a diff.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from zygote_py import cache

# What is tested is what the compiler makes now. Processes that tests start have a cache, and a new one.
cache.switch(False)
FOLDER = tempfile.mkdtemp(prefix="zygote-py-tests-")
os.environ["ZYGOTE_PY_CACHE_DIR"] = FOLDER
atexit.register(shutil.rmtree, FOLDER, ignore_errors=True)

GOLDEN = Path(__file__).parent / "golden"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write the files in tests/golden anew")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """With `-n`, a process gets tests that stand next to each other, which share what Numba compiles for them.

    A process that has done all of its own takes over some of another's.
    """
    if config.getoption("dist") != "load":
        return None
    from xdist.scheduler import WorkStealingScheduling

    return WorkStealingScheduling(config, log)


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Compare a text with the golden file of a name, or write the file."""

    def compare(name: str, text: str) -> None:
        path = GOLDEN / f"{name}.txt"
        text = text.rstrip("\n") + "\n"
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        assert path.exists(), f"there is no {path}: run pytest --update-golden and review it"
        assert text == path.read_text(encoding="utf-8")

    return compare
