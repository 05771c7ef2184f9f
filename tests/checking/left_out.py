"""Programs that an optional transformation must leave as they are, by the text that is emitted with and without it.

assert is_made("extremes", largest, x)
check_not_made("extremes", largest_of_some, x)      # and the value and the gradient are right
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import zygote_py as zg
from tests.checking.slopes import chosen_of, slopes
from tests.checking.trees import copied, real_parts


def _texts(derivative: Any, args: tuple[Any, ...]) -> tuple[str, str]:
    """The emitted text, and the one that Numba gets if that is another."""
    made = derivative._inspect(args).emitted
    return made.source, made.compiled.source if made.compiled else ""


def _derivatives(step: str, function: Callable[..., Any], args: tuple[Any, ...], mode: str) -> tuple[Any, bool]:
    """The derivative with a transformation, and whether its text is another one than without it."""
    whole, without = (zg.value_and_gradient(function, wrt=chosen_of(args), mode=mode) for _ in range(2))
    text = _texts(whole, args)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ZYGOTE_PY_WITHOUT", step)
        patch.delenv("ZYGOTE_PY_VERIFY", raising=False)  # which has been done
        return whole, _texts(without, args) != text


def is_made(step: str, function: Callable[..., Any], *args: Any, mode: str = "reverse") -> bool:
    """Whether a transformation changes the gradient of a function."""
    return _derivatives(step, function, args, mode)[1]


def check_not_made(step: str, function: Callable[..., Any], *args: Any, mode: str = "reverse") -> None:
    """Check that a transformation changes nothing, and compare value and gradient with the function in plain Python."""
    derivative, is_another = _derivatives(step, function, args, mode)
    assert not is_another, "the transformation is made"
    chosen, alone = chosen_of(args), getattr(function, "py_func", function)
    value, found = derivative(*copied(args))
    assert value == pytest.approx(alone(*copied(args)), rel=1e-12)
    expected = slopes(alone, args, chosen, np.random.default_rng(1))
    assert expected.doubt is None
    assert np.max(np.abs(expected.products)) > 1e-3
    assert expected.off(np.ones(1), real_parts(found if len(chosen) > 1 else (found,))) < 1e-7
