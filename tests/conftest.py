"""How the tests run: compiled or interpreted, verified, dealt out; and golden texts.

The default run is the quick one. Numba compiles without optimising, and tests that are marked `interpreted` run
everything in plain Python, the emitted source and the functions that they decorate with `numba.njit`, as with
`NUMBA_DISABLE_JIT=1`:

    pytestmark = pytest.mark.interpreted        # a module
    @pytest.mark.compiled                       # but for this test
    @pytest.mark.optimised                      # the same, optimised

`pytest --native` compiles and optimises everything; `pytest -m long` does too, and runs the long tests as well as all
others.

`golden(name, text)` compares a text with `tests/golden/NAME.txt`:

    def test_pow(golden):
        golden("pow", text(pow_primal()))

`pytest --update-golden` writes the files instead; review what changed as a diff.

`pytest --compiles` prints how many functions Numba compiles for each test module, which is most of what a run costs.
"""

from __future__ import annotations

import atexit
import gc
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numba
import numba.core.event
import pytest

import zygote_py.cache.helpers  # which says where helpers are kept, and is imported only once
import zygote_py.numpy_functions  # noqa: F401 (it registers the functions that the front end knows)
from tests.modes import compile_everything, optimiser, unless_native
from zygote_py import cache
from zygote_py.cache.folder import Folder
from zygote_py.numba_adapter import Helpers, keep_helpers, settings

# What is tested is what the compiler makes now. Processes that tests start have a cache, and a new one.
cache.switch(False)
os.environ["ZYGOTE_PY_VERIFY"] = "1"  # after every pass and every transform
FOLDER = tempfile.mkdtemp(prefix="zygote-py-tests-")
os.environ["ZYGOTE_PY_CACHE_DIR"] = FOLDER
atexit.register(shutil.rmtree, FOLDER, ignore_errors=True)
# Implementations of NumPy's functions are kept for all processes of this run, as users have them.
HELPERS = os.environ.setdefault("ZYGOTE_PY_TEST_HELPERS", str(Path(FOLDER) / "helpers"))
keep_helpers(lambda: Helpers(Folder(Path(HELPERS), 1e9), settings()))

GARBAGE = 1_000_000  # objects made and not freed since the last collection
GOLDEN = Path(__file__).parent / "golden"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write the files in tests/golden anew")
    parser.addoption("--compiles", action="store_true", help="print how many functions Numba compiles for each module")
    parser.addoption("--native", action="store_true", help="compile and optimise everything that is tested")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--native") or config.getoption("markexpr") == "long":
        compile_everything()
    else:
        os.environ.setdefault("NUMBA_OPT", "0")  # for processes that tests start, too
        numba.config.reload_config()  # type: ignore[attr-defined]
    if config.getoption("--compiles"):
        compilations = _Compilations()
        numba.core.event.register("numba:compile", compilations)
        config.pluginmanager.register(compilations)


class _Compilations(numba.core.event.Listener):
    """Counts the functions that Numba compiles, for each test module."""

    def __init__(self) -> None:
        self.module = ""
        self.counts: Counter[str] = Counter()

    def on_start(self, event: Any) -> None:
        self.counts[self.module] += 1

    def on_end(self, event: Any) -> None:
        pass

    def pytest_runtest_logstart(self, location: tuple[str, Any, str]) -> None:
        self.module = location[0]

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        terminalreporter.section("compilations by Numba")
        for module, count in sorted(self.counts.items()):
            terminalreporter.write_line(f"{count:6} {module}")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Let `-m long` select every test: what the default run interprets is compiled there."""
    if config.getoption("markexpr") == "long":
        for item in items:
            item.add_marker("long")


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Collect garbage between tests only, and seldom: when Python decides, it takes a tenth of the time."""
    gc.collect()
    gc.freeze()
    gc.disable()


def pytest_runtest_logfinish() -> None:
    """Collect what a few tests have left. What is alive then mostly stays so, and is not looked through again."""
    if gc.get_count()[0] > GARBAGE:
        gc.collect(1)
        gc.freeze()


@pytest.fixture(autouse=True)
def _mode(request: pytest.FixtureRequest) -> Iterator[None]:
    """Interpret, or optimise, what is marked so; the closest mark counts."""
    modes = {"interpreted": unless_native, "compiled": nullcontext, "optimised": optimiser}
    marks = [modes[mark.name] for mark in request.node.iter_markers() if mark.name in modes]
    with (*marks, nullcontext)[0]():
        yield


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
