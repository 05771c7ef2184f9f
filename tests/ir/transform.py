"""A pass, as text before and after."""

from __future__ import annotations

from collections.abc import Callable
from textwrap import dedent

from zygote_py.ir import Function, parse, verify
from zygote_py.ir.text.printer import text


def read(
    source: str, header: str = "function f(%x: f64, %y: f64, %n: i64, %p: bool) -> f64", **options: object
) -> Function:
    """The function of some blocks, well formed."""
    (function,) = parse(header + "\n" + dedent(source).strip("\n"))
    function.options = options
    verify(function)
    return function


def shown(function: Function) -> str:
    """The text of the blocks."""
    return text(function).partition("\n")[2]


def check(step: Callable[[Function], None], before: str, after: str, **how: object) -> None:
    """Compare what a pass makes of `before` with `after`."""
    function = read(before, **how)  # type: ignore[arg-type]
    step(function)
    verify(function)
    same(function, after)


def same(function: Function, expected: str) -> None:
    """Compare the blocks."""
    found = shown(function)
    assert found == dedent(expected).strip("\n"), f"\n{found}"
