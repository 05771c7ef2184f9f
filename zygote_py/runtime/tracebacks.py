"""Tracebacks of users' errors, without the frames of the compiler, ending in the user's line; and a warning.

    File "fit.py", line 9, in <module>              the call of the derivative
    File ".../derivative_function.py", in __call__
    File "fit.py", line 4, in loss                  the operation that cannot be differentiated
        x[1:] += x[:-1]

`ZYGOTE_PY_TRACEBACK=full` keeps all frames. Other errors keep theirs.
"""

from __future__ import annotations

import ast
import functools
import linecache
import os
import re
import warnings
from collections.abc import Callable, Mapping
from itertools import chain
from types import CodeType
from typing import Any, ParamSpec, TypeVar

from zygote_py import compiler
from zygote_py.adjoints import DifferentiationError
from zygote_py.base import arrays_in

_DEF = re.compile(r"\s*(?:async\s+)?def\s+(\w+)")
P = ParamSpec("P")
R = TypeVar("R")


def shortening(function: Callable[P, R]) -> Callable[P, R]:
    """Shorten the tracebacks of errors in the use of a public function. A decorator."""

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except Exception as error:
            if is_of_the_user(error):
                raise shortened(error) from None
            raise

    return call


def shortened(error: Exception) -> Exception:
    """Return the error with a short traceback, to be raised with `from None`."""
    if os.environ.get("ZYGOTE_PY_TRACEBACK") == "full":
        return error
    if isinstance(error, DifferentiationError) and error.file and error.line and "\0" not in error.file:
        try:
            exec(_raising(error.file, error.line), {"error": error.with_traceback(None)})
        except DifferentiationError as raised:
            own = raised.__traceback__
            return error.with_traceback(own and own.tb_next)
    return error.with_traceback(None)


def is_of_the_user(error: Exception) -> bool:
    """Return whether an error is about the use of the package."""
    return isinstance(error, DifferentiationError) or getattr(error, "is_misfit", False)


def _raising(file: str, line: int) -> CodeType:
    """Return code that raises `error` in a line of a file, in the function whose `def` is above it."""
    tree = ast.parse("raise error")
    indent = len(text := linecache.getline(file, line)) - len(text.lstrip())
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt | ast.expr):
            node.lineno, node.end_lineno = line, line + 1  # all of the line, so that nothing in it is underlined
            node.col_offset, node.end_col_offset = indent, 0
    lines = (linecache.getline(file, number) for number in range(line, max(line - 200, 0), -1))
    name = next((found[1] for each in lines if (found := _DEF.match(each))), "<lambda>")
    return compile(tree, file, "exec").replace(co_name=name, co_qualname=name)


def warn_of_zeros(name: str, source: str) -> None:
    """Warn of parameters whose gradient is zero since only decisions depend on them, if `ZYGOTE_PY_WARN` is set."""
    if os.environ.get("ZYGOTE_PY_WARN", "") in ("", "0"):
        return
    for note in re.findall(f"^# ({compiler.FLAT}: .*)$", source, re.MULTILINE):
        warnings.warn(f"{name}: {note}", stacklevel=2)


def name_arrays(error: Exception, arguments: Mapping[str, Any]) -> None:
    """Let an error about arguments that share memory name both, which compiled code leaves to the caller."""
    if isinstance(error, ValueError) and "shares memory" in str(error):
        from zygote_py.adjoints.routines import also_named  # not loaded if the derivative came from disk

        arrays = dict(chain.from_iterable(arrays_in(name, value) for name, value in arguments.items()))
        error.args = (also_named(str(error), arrays),)
