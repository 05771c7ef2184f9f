"""Text of a user's that goes into what is written: lines of source and names of files into comments, names into code.

    one_line("y = x\\r    import os")          # "y = x\\\\r    import os"
    identifier("<lambda>", "function")        # "function"

Python's source ends a line at a carriage return as well, readers of it at any of a dozen characters, and what is not
text in UTF-8 cannot be written to a file. What comes from outside is what it says, and never code.
"""

from __future__ import annotations

import keyword
import os
import unicodedata

from zygote_py.ir.core import Loc


def one_line(text: str) -> str:
    """A text that can stand in a comment: characters that cannot be printed are written as escapes, but for tabs."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() or each == "\t" else _escape(each) for each in text)


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def place_text(loc: Loc) -> str:
    """A location as comments name it: the file without its folder, and the line."""
    return f"{one_line(os.path.basename(loc.file))}:{loc.line}"


def is_identifier(name: str) -> bool:
    """Whether Python reads a text as a name, and as this one."""
    return name.isidentifier() and not keyword.iskeyword(name) and unicodedata.normalize("NFKC", name) == name


def identifier(name: str, otherwise: str) -> str:
    """A name, or what to write where it is none: the name of a lambda, or one that somebody has set."""
    return name if is_identifier(name) else otherwise
