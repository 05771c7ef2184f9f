"""Sanitizing of user text for emission: source lines and file names go into comments, names into code.

    one_line("y = x\\r    import os")          # "y = x\\\\r    import os"
    identifier("<lambda>", "function")        # "function"

Python also ends a source line at a carriage return, other readers of source at any of a dozen characters, and text that
is not valid UTF-8 cannot be written to a file. User text must never become code.
"""

from __future__ import annotations

import keyword
import os
import unicodedata

from zygote_py.ir.core import Loc


def one_line(text: str) -> str:
    """Return a text that is safe in a comment: unprintable characters except tabs are escaped."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() or each == "\t" else _escape(each) for each in text)


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def place_text(loc: Loc) -> str:
    """Return a location as shown in comments: the file without its folder, and the line."""
    return f"{one_line(os.path.basename(loc.file))}:{loc.line}"


def is_identifier(name: str) -> bool:
    """Return whether Python reads a text as an identifier, and as this very one."""
    return name.isidentifier() and not keyword.iskeyword(name) and unicodedata.normalize("NFKC", name) == name


def identifier(name: str, otherwise: str) -> str:
    """Return a name, or `otherwise` if it is not an identifier: the name of a lambda, or one set by user code."""
    return name if is_identifier(name) else otherwise
