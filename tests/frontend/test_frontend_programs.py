"""The output of the front end computes the same as the function: the IR, interpreted, against Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.frontend.frontend_programs import CASES
from zygote_py.frontend import lower
from zygote_py.ir import interpret, verify
from zygote_py.numba_adapter import typeof


def outcome(function: Callable[..., Any], *args: Any) -> Any:
    try:
        return function(*args)
    except Exception as error:
        return type(error), error.args


@pytest.mark.parametrize(("function", "args"), CASES, ids=lambda each: getattr(each, "__name__", ""))
def test_the_ir_computes_the_same(function, args):
    lowered = lower(function, [typeof(arg) for arg in args])
    verify(lowered.function)
    assert len(lowered.function.params) == lowered.argument_count + len(lowered.hidden)
    captured = [capture.read() for capture in lowered.hidden]
    expected = outcome(function, *args)
    found = outcome(interpret, lowered.function, *args, *captured)
    np.testing.assert_equal(found, expected)
