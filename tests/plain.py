"""The emitted source of a gradient, run in plain Python.

    run = plain("@njit\\ndef f(x):\\n    return 2 * x\\n")
    run(3.0)        # 6.0, with nothing compiled

Decorators and Numba's imports are what they are in the text; only `njit` does nothing. It does not check that the text
stands alone: `tests.api.test_api` runs one in a process without the library.
"""

from __future__ import annotations

import ast
import linecache
from collections.abc import Callable
from typing import Any


def plain(text: str, filename: str = "<emitted source>") -> Callable[..., Any]:
    """The last function that a module's text defines, without its decorators."""
    module = ast.parse(text)
    functions = [node for node in module.body if isinstance(node, ast.FunctionDef)]
    for function in functions:
        function.decorator_list = []
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    scope: dict[str, Any] = {"__name__": "emitted"}
    exec(compile(module, filename, "exec"), scope)
    return scope[functions[-1].name]  # type: ignore[no-any-return]
