"""Numba's errors as ours: its reason in a line or two, and the line of the user's file that it is about.

    Failed in nopython mode pipeline (step: nopython frontend)          f.py:3: Numba cannot compile this: Unknown
    Unknown attribute 'foo' of type float64                     ->          attribute 'foo' of type float64
    File "f.py", line 3: ...

It does not judge whether Numba is right.
"""

from __future__ import annotations

import re
from typing import Any

from zygote_py.adjoints.errors import DifferentiationError, refuse
from zygote_py.ir.core import Loc

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_NOISE = re.compile(
    r"^(During: |File \"|This error may have been caused|There are \d+ candidate|- Of which|Overload of function|"
    r"Overload in function|Match:|\* \(|>>> |- argument|During the|Enable logging|Compilation is falling|With argument|"
    r"raised from|Rejected as|Failed in nopython|Unknown attribute of type|<source|def |For more information|"
    r"https?://|def$|Error occurred at|All available templates)"
)


def translate_error(error: Exception, func: Any, loc: Loc) -> DifferentiationError:
    """Numba's reason in a line or two, and the line of the user's file that it is about."""
    text = _COLOUR.sub("", str(getattr(error, "msg", None) or error))
    code = func.__code__
    lines = [int(line) for file, line in re.findall(r'File "([^"]+)", line (\d+)', text) if file == code.co_filename]
    numba_loc = getattr(error, "loc", None)
    if numba_loc is not None and numba_loc.filename == code.co_filename:
        lines.append(numba_loc.line)
    kept: list[str] = []
    for line in text.splitlines():
        stripped = line.strip()
        if stripped and not set(stripped) <= set("^~-=.: ") and not _NOISE.match(stripped) and stripped not in kept:
            kept.append(stripped)
    reason = "; ".join(kept[:3]) or type(error).__name__
    reason = reason if len(reason) <= 300 else reason[:297] + "..."
    place = Loc(code.co_filename, lines[-1]) if lines else loc
    return refuse(f"Numba cannot compile this: {reason}", place, "write it with what Numba supports")
