"""Functions beside the one that a module is entered by are compiled without a way in from Python."""

from __future__ import annotations

import numba
import pytest

from zygote_py import numba_adapter
from zygote_py.emit import Emitted

SOURCE = """\
from numba import njit


@njit
def power(x, n):
    return x * power(x, n - 1) if n > 0 else 1.0


@njit
def entry(x, n):
    return power(x, n) + 1.0
"""


@pytest.mark.skipif(numba_adapter.jit_is_disabled(), reason="there is nothing compiled")
def test_what_is_compiled_for_code_runs_in_the_interpreter_where_python_calls_it():
    entry = numba_adapter.entry_of(numba_adapter.load(Emitted(SOURCE, "entry", {})))
    power = entry.__globals__["power"]
    assert power(2.0, 3) == 8.0  # before anything is compiled
    assert power.signatures == []
    assert numba.njit(entry)(2.0, 3) == 9.0
    assert len(power.signatures) == 1
    assert power(2.0, 3) == 8.0
    assert power(2, 2) == 4  # a type that it was not compiled for
    assert entry(2.0, 3) == 9.0
    (text,) = power.inspect_llvm().values()
    assert "cpython" not in text
