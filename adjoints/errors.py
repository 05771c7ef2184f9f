"""The errors that users see: the unsupported feature, its location, and a hint.

    pow.py:5: `yield` cannot be differentiated
        yield x * 2
        ^
    write a loop that sums the values of the generator

`refuse` makes one from a location of the IR. Source lines come from `linecache`; a function from the REPL or from
`exec` usually has none, and then only `file:line` is shown. Bugs of the compiler itself are `InternalError`s.
"""

from __future__ import annotations

import linecache
import re

from zygote_py.ir import Loc, one_line


class DifferentiationError(Exception):
    """A function, an argument or an operation that cannot be differentiated.

    Attributes
    ----------
    message : str
        The unsupported feature.
    file, line, column : str, int, int, or None
        The location, if it is known. Lines and columns are counted from 1.
    source_line : str or None
        The text of the line, without its newline.
    hint : str
        The alternative, or an empty string.

    Examples
    --------
    >>> import numpy as np
    >>> from zygote_py import DifferentiationError, gradient
    >>> try:
    ...     gradient(lambda x: np.nextafter(x, 1.0))(0.5)
    ... except DifferentiationError as error:
    ...     print(error.message)
    np.nextafter is not differentiated: it is a property of the number format, not a function of a real variable
    """

    def __init__(
        self,
        message: str,
        file: str | None = None,
        line: int | None = None,
        source_line: str | None = None,
        column: int | None = None,
        hint: str = "",
    ) -> None:
        super().__init__(message, file, line, source_line, column, hint)  # all of them, for pickling
        self.message = message
        self.file = file
        self.line = line
        self.source_line = source_line
        self.column = column
        self.hint = hint

    def __str__(self) -> str:
        where = "" if self.file is None else f"{one_line(self.file)}:{self.line}: "
        lines = [where + self.message]
        if self.source_line is not None:
            text = self.source_line.rstrip()
            indent = len(text) - len(text.lstrip())
            column = indent + 1 if self.column is None else self.column
            lines += [f"    {one_line(text[indent:])}", f"    {_blank(one_line(text[indent : column - 1]))}^"]
        if self.hint:
            lines.append(self.hint)
        return "\n".join(lines)


def refuse(message: str, loc: Loc | None = None, hint: str = "", token: str = "") -> DifferentiationError:
    """Return the error for a location; the caret is below the first `token` from the column of `loc` on.

    >>> raise refuse("`with` is not supported", Loc("f.py", 3), hint="call the function outside of `with`")
    """
    if loc is None:
        return DifferentiationError(message, hint=hint)
    source = linecache.getline(loc.file, loc.line).rstrip("\n") or None
    column = loc.column if source is None else _find(token, source, loc.column)
    return DifferentiationError(message, loc.file, loc.line, source, column, hint)


def _find(token: str, source: str, start: int | None) -> int:
    """Return the column of the first whole `token` from `start` on, else `start` or that of the first text."""
    indent = len(source) - len(source.lstrip())
    if token:
        before = r"(?<!\w)" if token[0].isalnum() or token[0] == "_" else ""
        after = r"(?!\w)" if token[-1].isalnum() or token[-1] == "_" else ""
        pattern = re.compile(before + re.escape(token) + after)
        if match := pattern.search(source, (start or 1) - 1) or pattern.search(source):
            return match.start() + 1
    return indent + 1 if start is None else start


def _blank(text: str) -> str:
    """Return blanks as wide as `text`, with its tabs kept."""
    return re.sub(r"[^\t]", " ", text)
