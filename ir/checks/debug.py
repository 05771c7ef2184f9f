"""Dumps and checks of the IR after each step of the compiler, controlled by environment variables.

    check_after("expand_arrays", function)

With `ZYGOTE_PY_VERIFY=1` the functions are verified after every pass and every transform. `ZYGOTE_PY_DUMP=all`, or the
names of steps (`ZYGOTE_PY_DUMP=unrotate_loops,join`), prints their text to stderr after these.
"""

from __future__ import annotations

import os
import sys

from zygote_py.ir.checks.verify import verify
from zygote_py.ir.core import Function
from zygote_py.ir.text.printer import text


def check_after(step: str, *functions: Function) -> None:
    """Dump and verify functions that a step has created or changed. Raises InternalError if one is not well formed."""
    dumped = os.environ.get("ZYGOTE_PY_DUMP")
    if dumped and (dumped == "all" or step in dumped.split(",")):
        for function in functions:
            print(f"--- {function.name} after {step}", text(function), sep="\n", file=sys.stderr)
    if os.environ.get("ZYGOTE_PY_VERIFY") == "1":
        for function in functions:
            verify(function, step)
