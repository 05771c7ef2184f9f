"""Compilation ahead of the first call, what is printed of a long one, and the table of its stages."""

from __future__ import annotations

import gc
import io
import re
import time

import numba
import numpy as np
import pytest
from numba.core import event

import zygote_py as zg
from tests.modes import one_in
from zygote_py.base import compilation, stage, timings

SCALE = np.array([1.0, 2.0])


def scaled(x, n=2):
    s = 0.0
    for _ in range(n):
        s += np.sum(x * x * SCALE)
    return s


@numba.njit
def cube(x):
    return x * x * x


@pytest.mark.parametrize(
    ("df", "types", "args", "expected"),
    [
        (zg.gradient(scaled, wrt="x"), (np.ones(2),), (np.ones(2),), [4.0, 8.0]),
        (zg.gradient(scaled, wrt="x"), ("f64[::1], i64",), (np.ones(2), 3), [6.0, 12.0]),
        (zg.hessian(cube), (numba.float64,), (2.0,), 12.0),
        (zg.gradient(lambda g, x: g(x) * x, wrt="x"), (cube, 1.0), (cube, 2.0), 32.0),
        (zg.gradient(lambda x, *rest: x * rest[0]), (1.0, 1.0), (2.0, 3.0), [3.0, 2.0]),
    ],
    ids=["values", "text", "types", "function", "star"],
)
def test_nothing_is_compiled_in_the_call_afterwards(df, types, args, expected):
    zg.compile(df, *types)
    with event.install_recorder("numba:run_pass") as recorded:
        found = df(*args)
    assert not recorded.buffer
    np.testing.assert_allclose(found, expected)


def test_what_cannot_be_compiled():
    with pytest.raises(TypeError, match=r"compile takes a derivative, .* not function"):
        zg.compile(scaled, "f64[:]")
    with pytest.raises(TypeError, match="from 1 to 2 positional arguments but 4"):
        zg.compile(zg.gradient(scaled), 1.0, 2, 3.0, 4.0)
    with pytest.raises(zg.DifferentiationError):
        zg.compile(zg.gradient(lambda x: {x}), 1.0)


@pytest.fixture
def unfrozen():
    """Nothing is frozen, as in the programs of users; what was frozen is so again afterwards."""
    frozen = gc.get_freeze_count()
    gc.unfreeze()
    yield
    if frozen:
        gc.freeze()


@pytest.mark.parametrize(("promoted", "old"), one_in(2, [(0, True), (timings._MOST_PROMOTED, False)]))
def test_garbage_collection_is_as_before_afterwards(monkeypatch, unfrozen, promoted, old):
    monkeypatch.setattr("zygote_py.base.timings._promoted", promoted)
    known = gc.get_threshold()
    gc.collect()
    with compilation("compiling f(float64)"):
        assert gc.get_threshold()[0] > known[0]
        made = [{} for _ in range(50)]
    assert gc.get_threshold() == known
    assert not gc.get_freeze_count()
    assert (sum(each is made for each in gc.get_objects(generation=2)) == 1) is old


def test_objects_that_the_program_has_frozen_stay_so(monkeypatch, unfrozen):
    monkeypatch.setattr("zygote_py.base.timings._promoted", 0)
    gc.freeze()
    try:
        frozen = gc.get_freeze_count()
        with compilation("compiling f(float64)"):
            pass
        assert gc.get_freeze_count() >= 0.9 * frozen > 0
    finally:
        gc.unfreeze()


class _Terminal(io.StringIO):
    def isatty(self):
        return True


def _compiled_slowly(monkeypatch, terminal):
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setattr("zygote_py.base.timings._PATIENCE", 0.05)
    with compilation("compiling f(float64)"), compilation("compiling what it calls"), stage("inner"):
        time.sleep(0.2)
    with compilation("compiling g()"):
        pass
    return terminal.getvalue()


def test_a_sign_of_life(monkeypatch):
    monkeypatch.delenv("ZYGOTE_PY_PROGRESS", raising=False)
    said = _compiled_slowly(monkeypatch, _Terminal()).splitlines()
    assert re.fullmatch(r"zygote_py: compiling f\(float64\), since \d\d:\d\d:\d\d", said[0])
    assert re.fullmatch(r"zygote_py: compiling f\(float64\): \d+\.\d s", said[1])


def test_no_word_elsewhere(monkeypatch):
    monkeypatch.delenv("ZYGOTE_PY_PROGRESS", raising=False)
    assert _compiled_slowly(monkeypatch, io.StringIO()) == ""
    monkeypatch.setenv("ZYGOTE_PY_PROGRESS", "0")
    assert _compiled_slowly(monkeypatch, _Terminal()) == ""


def test_a_broken_stream_is_ignored(monkeypatch):
    monkeypatch.delenv("ZYGOTE_PY_PROGRESS", raising=False)
    terminal = _Terminal()
    terminal.close()
    monkeypatch.setattr("sys.stderr", terminal)
    with compilation("compiling f(float64)"):
        pass


def test_the_table_of_stages(monkeypatch, capsys):
    monkeypatch.setenv("ZYGOTE_PY_TIMINGS", "1")
    monkeypatch.setenv("ZYGOTE_PY_CACHE", "0")
    monkeypatch.setattr(timings, "_LEAST", 0.0)

    def f(x):
        return x * cube(x) - x

    assert zg.gradient(f)(2.0) == 31.0
    said = capsys.readouterr().err
    deriving, compiling = re.split("^zygote_py: ", said, flags=re.MULTILINE)[1:]
    assert deriving.startswith("deriving f_gradient(float64): ")
    assert compiling.startswith("compiling f_gradient(float64): ")
    for text, stages in [
        (deriving, ["preparation"]),
        (compiling, ["Numba: zygote_py_EmittedLowering", "LLVM: machine code"]),
    ]:
        total, *rows = text.splitlines()
        found = {name: float(seconds) for name, seconds in (re.split(r"\s{2,}", row.strip())[:2] for row in _cut(rows))}
        assert set(stages) <= set(found)
        whole = float(total.split(": ")[1].removesuffix(" s"))
        assert 0.5 * whole - 0.05 < sum(found.values()) < whole + 0.05


def _cut(rows):
    return [re.sub(r" s(  x \d+)?$", "", row) for row in rows]


def test_a_stage_that_fails_is_ended(monkeypatch, capsys):
    monkeypatch.setenv("ZYGOTE_PY_TIMINGS", "1")

    @stage("outer")
    def failing():
        with stage("inner"):
            time.sleep(0.01)
            raise ZeroDivisionError

    with compilation("compiling f()"), pytest.raises(ZeroDivisionError):
        failing()
    assert re.findall(r"(\w+) +0\.\d+ s", capsys.readouterr().err) == ["inner"]
    with compilation("compiling g()"):
        pass
    assert capsys.readouterr().err.startswith("zygote_py: compiling g(): 0.00 s")
