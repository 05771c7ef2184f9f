"""Tracebacks of what users did wrong end in the users' lines."""

from __future__ import annotations

import linecache
import traceback
from pathlib import Path

import numpy as np
import pytest

import zygote_py as zg
from zygote_py import DifferentiationError


def overlapping(x):
    y = x * 2.0
    y[1:] += y[:-1]  # the line
    return np.sum(y)


def calls(x):
    return overlapping(x) + 1.0


def frames_of(call):
    with pytest.raises((DifferentiationError, TypeError)) as caught:
        call()
    assert caught.value.__suppress_context__
    return traceback.extract_tb(caught.value.__traceback__)


def inner(frames):
    """How many frames are of the library."""
    folder = str(Path(zg.__file__).parent)
    return sum(frame.filename.startswith(folder) for frame in frames)


@pytest.mark.parametrize(
    "of",
    [
        *(zg.gradient, zg.hessian, lambda f: zg.gradient(f).source, lambda f: zg.gradient(f).primal_ir),
        *(lambda f: lambda x: zg.pullback(f, x), lambda f: lambda x: zg.check_gradient(f, x)),
        *(lambda f: zg.hessian(f, sparsity="detect"), lambda f: zg.hessian(f, sparsity="detect").pattern),
    ],
)
def test_it_ends_in_the_line_that_cannot_be_differentiated(of):
    for f in (overlapping, calls):
        frames = frames_of(lambda f=f: of(f)(np.ones(3)))
        last = frames[-1]
        assert last.filename == __file__
        assert linecache.getline(last.filename, last.lineno).strip() == "y[1:] += y[:-1]  # the line"
        assert last.name == "overlapping"
        assert inner(frames) == 1
        assert "^" not in "".join(traceback.format_list(frames[-1:]))


def test_wrong_arguments_have_one_frame_of_the_library():
    frames = frames_of(lambda: zg.gradient(overlapping)(1.0, 2.0))
    assert [frame.name for frame in frames][-1] == "__call__"
    assert inner(frames) == 1


def test_wrong_seeds_have_one_frame_of_the_library():
    _, back = zg.pullback(lambda x: x * 2.0, np.ones(3))
    for seeds in ((), (np.ones(2),), (np.ones(3), np.ones(3))):
        with pytest.raises(DifferentiationError) as caught:
            back(*seeds)
        assert inner(traceback.extract_tb(caught.value.__traceback__)) == 1


def test_all_frames_are_there_on_request(monkeypatch):
    monkeypatch.setenv("ZYGOTE_PY_TRACEBACK", "full")
    with pytest.raises(DifferentiationError) as caught:
        zg.gradient(overlapping)(np.ones(3))
    assert len(traceback.extract_tb(caught.value.__traceback__)) > 5


def test_what_the_function_raises_is_left_alone():
    def raises(x):
        if x > 1.0:
            raise TypeError("too large")
        return x

    with pytest.raises(TypeError, match="too large"):
        zg.gradient(raises)(2.0)
