"""Numba's errors as DifferentiationErrors: the reason in one line, and the line of the user's file.

    Failed in nopython mode pipeline (step: nopython frontend)          f.py:3: a value of type `float64` has no
    Unknown attribute 'foo' of type float64                     ->      attribute `foo`
    File "f.py", line 3: ...                                                return x.foo
                                                                                     ^
It does not judge whether Numba is right.
"""

from __future__ import annotations

import inspect
import linecache
import re
import traceback
from collections.abc import Sequence
from types import CodeType, FrameType
from typing import Any

from zygote_py.adjoints import DifferentiationError, refuse
from zygote_py.base import OURS
from zygote_py.ir import Loc, is_identifier, one_line, place_text
from zygote_py.numba_adapter.base.internals import errors

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_LITERAL = re.compile(r"Literal\[(\w+)\]\([^()]*\)")
_FUNCTION = re.compile(
    r"type\(CPUDispatcher\(<function (\S+) at 0x\w+>\)\)|function (\S+) at \d+ (?:Decoration\(.*?\) )?in \d+"
)
_FORM = re.compile(r"\b([A-Z]\w*?)(?:Form)?\((?=\w+=)(?:[^()]|\([^()]*\))*\) of ")
# Bytecodes that Numba does not know, by the statement they come from: what it is called, and what to do instead.
_STATEMENTS = {
    "IMPORT_NAME": ("`import` in a function", "import at the top of the module", "import"),
    "IMPORT_FROM": ("`import` in a function", "import at the top of the module", "import"),
    "LOAD_BUILD_CLASS": ("a class in a function", "define it outside, as a NamedTuple", "class"),
    "STORE_GLOBAL": ("assigning to a global variable", "return the value", ""),
    "DELETE_GLOBAL": ("deleting a global variable", "use local variables", "del"),
    "DELETE_ATTR": ("deleting an attribute", "use local variables", "del"),
    "UNPACK_EX": ("unpacking with `*`", "unpack all of it, or use a slice", "*"),
    "MATCH_SEQUENCE": ("a pattern of a sequence in `match`", "compare `len(t)`, and unpack it: `a, b = t`", "case"),
    "MATCH_MAPPING": ("a pattern of a mapping in `match`", "use `if`", "case"),
    "MATCH_CLASS": ("a pattern of a class in `match`", "read the fields by their names", "case"),
    "CHECK_EG_MATCH": ("`except*`", "write `except Exception:`", "except"),
    "GET_AWAITABLE": ("`await`", "write an ordinary function", "await"),
}
_SUPPORTED = "write it with what Numba supports"
# What to do instead of writing to an array that is read-only; captured ones are, as Numba has it.
PASS_IT = "pass it as an argument, or write to a copy"
# What Numba says, wherever it says it: the message, what to do instead, where it is if not where Numba says, and the
# word to point to.
_SAID = {
    "Exception object cannot be stored into variable": (
        "`except ... as e` is not supported",
        "leave out `as e`: what an exception says cannot be read",
        r"\s*except\b.* as\b",
        "as",
    ),
    "re-raising of an exception is not yet supported": (
        "`raise` without an exception is not supported",
        'raise one: `raise ValueError("...")`',
        r"\s*raise\s*(#.*)?$",
        "raise",
    ),
    "'Tuple' object has no attribute 'exc_class'": (
        "`except` of several kinds of exceptions is not supported",
        "write `except Exception:`",
        r"\s*except\s*\(",
        "except",
    ),
    "yield in a closure": ("a generator expression is not supported", "write it as a loop", None, "for"),
    "Cannot modify readonly array": (
        "this array cannot be written to: it is captured, or read-only",
        PASS_IT,
        None,
        "[",
    ),
}
# What to do instead of a call that Numba does not have for lists, by the beginning of the call.
_OF_LISTS = {
    r"i?add\((ListType\[|list\()": "use `extend`",
    r"(sorted|ol_list_sort)\(.*key=the function": "decorate the key function with @numba.njit, or write a lambda",
    r"(min|max)\(.*(key|default)=": "write a loop that keeps the best item",
    r"(stack|[vhdr]?stack|column_stack|concatenate)\(list\(": "give a tuple of arrays, or fill an array in a loop",
    r"array\(list\(array\(": "fill an array in a loop: `a[i] = s[i]`",
    r"array\(ListType\[": "use `np.asarray`",
    r"(sum|max|min)\((list\(|ListType\[)(array|UniTuple|Tuple)": "write a loop over the list",
    r"\w+\((list\(|ListType\[)[a-z]+\d+[\])]": "make an array of the list first: `np.array(s)`",
}
_OF_OBJECTS = "use the attributes and methods of the object; convert it to numbers and arrays for anything else"
_CALL_IT = "write a loop that calls it for the elements"
# Reasons by their patterns: the message, what to do, and the word to point to, with `{1}` for the first group. Those
# that this package gave to Numba are sentences already.
_REASONS = {
    "Nesting of literal_unroll": (
        "a loop over a tuple of several types in another one is not supported",
        "give all components one type, or put the inner loop into a function",
        "in",
    ),
    r"`(\w+)` cannot be made in a compiled function because .*": (
        "{0}",
        "make the object outside and pass it as an argument",
        "{1}",
    ),
    r"wrong arguments for `(\w+)`: .*": ("{0}", "give a value for each parameter that has no default", "{1}"),
    r"`(\w+)` was compiled for .* only, .*": (
        "{0}",
        "convert the arguments, or compile it for these types too",
        "{1}",
    ),
    r"Unknown attribute '(\w+)' of type Module\(<module '([\w.]+)'": (
        "Numba does not know `{2}.{1}`",
        _SUPPORTED,
        "{1}",
    ),
    r"Unknown attribute '(reduce|accumulate|reduceat|outer|at)' of type function (\w+)": (
        "the method `{1}` of the ufunc `{2}` is not supported",
        _CALL_IT,
        "{1}",
    ),
}
# What to do instead of calling a method of a ufunc of NumPy.
_INSTEAD_OF_METHODS = {
    "add.reduce": "use `np.sum`",
    "multiply.reduce": "use `np.prod`",
    "maximum.reduce": "use `np.max`",
    "minimum.reduce": "use `np.min`",
    "logical_and.reduce": "use `np.all`",
    "logical_or.reduce": "use `np.any`",
    "add.accumulate": "use `np.cumsum`",
    "multiply.accumulate": "use `np.cumprod`",
    "multiply.outer": "use `np.outer`",
}


def translate_error(error: Exception, func: Any, definition: Loc) -> DifferentiationError:
    """The error to raise for one that Numba raised while it read or typed `func`."""
    text = _COLOUR.sub("", str(error))
    place = place_of(error, func.__code__) or definition
    if found := re.search(r"Use of unsupported opcode \((\w+)\)", text):
        what, hint, token = _STATEMENTS.get(found[1], (f"this (bytecode {found[1]})", _SUPPORTED, ""))
        return refuse(f"{what} is not supported", place, hint, token)
    if "with (context manager)" in text or "with-context" in text or "context manager" in text:
        return refuse_with(find_line(func.__code__, r"\s*with\b") or place)
    for said, (message, hint, line, token) in _SAID.items():
        if said in text:
            return refuse(message, (find_line(func.__code__, line) if line else None) or place, hint, token)
    if found := re.search(r"No implementation of function Function\(.*\) found for signature:\s*>>> (.+)", text):
        call = _readable(found[1])
        if call.startswith("exception_match("):
            return refuse(
                "`except` of one kind of exception is not supported", place, "write `except Exception:`", "except"
            )
        name = call.partition("(")[0]
        if name == "tuple" and find_line(func.__code__, r"[^=]*\*\w+\b[^=]*=[^=]") is not None:
            what = f"unpacking a value of type `{call[6:-1]}` with `*` is not supported"
            return refuse(what, place, "write `a, b = x[0], x[1:]`", "*")
        hint = next((hint for pattern, hint in _OF_LISTS.items() if re.match(pattern, call)), _supported(call))
        return refuse(f"Numba has no `{call}`", place, hint, "del" if name == "delitem" else name)
    for pattern, (message, hint, token) in _REASONS.items():
        if found := re.search(pattern, text):
            groups = found[0].strip(), *found.groups()
            return refuse(message.format(*groups), place, hint, token.format(*groups))
    return _of_types(error, text, func.__code__, place)


def _of_types(error: Exception, text: str, code: Any, place: Loc) -> DifferentiationError:
    """The error to raise for one that names attributes or types."""
    if found := re.search(r"Unknown attribute '(\w+)' of type Function\(<ufunc '(\w+)'>\)", text):
        hint = _INSTEAD_OF_METHODS.get(f"{found[2]}.{found[1]}", _CALL_IT)
        return refuse(f"Numba does not know `np.{found[2]}.{found[1]}`", place, hint, found[1])
    if "BoundFunction(array.view" in text or _raised_in(error, "resolve_view"):
        return refuse(
            "Numba does not know this form of `view`",
            find_line(code, r".*\.\s*view\s*\(") or place,
            "give it a type of NumPy by position: `x.view(np.int64)`",
            "view",
        )
    if found := re.search(r"Unknown attribute '(\w+)' of type (.+)", text):
        what = f"a value of type `{_readable(found[2])}` has no attribute `{found[1]}`"
        return refuse(what, place, _supported(found[2]), found[1])
    if found := re.search(r"Type of variable '([^']+)' cannot be determined", text):
        name = found[1].partition(".")[0]
        what = f"the type of `{name}`" if name.isidentifier() else "the type of a value"
        return refuse(f"Numba cannot determine {what}", place, "give it a value of that type before the loop", name)
    if found := re.search(r"Invalid use of getiter with parameters \((.+)\)", text):
        kind = _readable(found[1])
        what, hint = f"`{kind}`", "give all components one type"
        if kind == "Tuple()":
            what, hint = "a tuple without components", "pass at least one, or write a function of its own for none"
        return refuse(f"a loop over {what} is not supported", place, hint, "in")
    if found := re.search(r"Can't unify return type from the following types: (.+)", text):
        kinds = ", ".join(sorted(_readable(found[1]).split(", ")))
        lines = [int(line) for line in re.findall(r"File \".+\", line (\d+)", text)]
        place = Loc(place.file, max(lines)) if lines else place
        return refuse(f"the results have different types: {kinds}", place, "return the same type everywhere", "return")
    if found := re.search(r"Cannot unify (.+) and (.+) for '([^']+)', defined at .* \((\d+)\)", text):
        name = found[3].partition(".")[0]
        what = f"the variable `{name}`" if name.isidentifier() else "a value"
        kinds = f"{_readable(found[1])} in one place and {_readable(found[2])} in another"
        functions = re.match(r"function |Function\(|type\(CPUDispatcher", found[1])
        hint = "call each function in its own branch of an `if`" if functions else "use one variable for each type"
        return refuse(f"{what} is {kinds}", place, hint, name)
    if isinstance(error, errors.ForceLiteralArg):
        what = "an argument that has to be a constant (`numba.literally`) is not supported"
        return refuse(what, place, "write the constant where it is used", "literally")
    if isinstance(error, AttributeError) and "'NoneType' object has no attribute 'args'" in text:
        # What Numba raises for an operator in place whose result it cannot store.
        return refuse(
            "an operator in place writes to a read-only array, or gives elements of a type that the array cannot hold",
            find_line(code, r".*[-+*/%&|^<>]=") or place,
            "write to a copy, of the type of the result",
            "=",
        )
    if isinstance(error, AttributeError) and error.name:
        return refuse(
            f"{error}",
            find_line(code, rf".*\.\s*{error.name}\b") or place,
            "call a function that there is",
            error.name,
        )
    said = _first_line(text)
    return refuse(f"Numba cannot compile this: {said or type(error).__name__}", place, _supported(said))


def _supported(said: str) -> str:
    """Return what to do instead of something that Numba does not support."""
    return _OF_OBJECTS if "object of " in said else _SUPPORTED


def refuse_with(place: Loc) -> DifferentiationError:
    """The error for a `with` statement."""
    if "objmode" in linecache.getline(place.file, place.line):
        rule = "`@zg.adjoint(f)` above `def rule(x): return f(x), lambda dy: (dy * ...,)`"
        hint = f"put it into a compiled function `f` of its own; call `zg.ignore(f)`, or give that a rule: {rule}"
        return refuse("what runs in the interpreter (`objmode`) is not differentiated", place, hint, "with")
    return refuse("`with` is not supported", place, "call the function outside of `with`", "with")


def note_calls(error: DifferentiationError, functions: Sequence[Any]) -> None:
    """Let an error in a called function say which calls lead to it: `f (a.py:3) calls g (a.py:9), which calls ...`."""
    functions = [each for each in functions if OURS not in each.__globals__]
    if len(functions) < 2 or getattr(error, "has_calls", False):
        return
    first, second, *others = [
        f"{one_line(each.__qualname__.rpartition('<locals>.')[2])} ({place_text(definition_of(each.__code__))})"
        for each in functions
    ]
    chain = "".join([f"{first} calls {second}", *(f", which calls {each}" for each in others)])
    error.hint = f"{error.hint}\n{chain}" if error.hint else chain
    error.args = (*error.args[:-1], error.hint)
    error.has_calls = True  # type: ignore[attr-defined]


def _raised_in(error: BaseException, name: str) -> bool:
    """Whether an error comes from a function with this name, which says nothing else of it."""
    frame = _last_frame(error)
    return frame is not None and frame.f_code.co_name == name


def _last_frame(error: BaseException) -> FrameType | None:
    """The frame that raised an error."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    return frames[-1] if frames else None


def is_ours(error: Exception) -> bool:
    """Return whether an error was raised by this package, not by Numba."""
    frame = _last_frame(error)
    return frame is not None and frame.f_globals.get("__name__", "").startswith("zygote_py.")


def place_of(error: Exception, code: CodeType) -> Loc | None:
    """The line of the function that an error of Numba is about, as far as it says."""
    loc = getattr(error, "loc", None)
    if loc is not None and loc.filename == code.co_filename:
        return Loc(loc.filename, loc.line)
    for pattern in (r"Raised from (.+) \((\d+)\)", r"File \"(.+)\", line (\d+)", r"at (\S+) \((\d+)\)"):
        for file, line in re.findall(pattern, _COLOUR.sub("", str(error))):
            if code.co_filename.endswith(file):
                return Loc(code.co_filename, int(line))
    return None


def _first_line(text: str) -> str:
    """The first line that says something about the function."""
    lines = (line.strip() for line in text.splitlines())
    first = next((line for line in lines if line and not line.startswith("Failed in ")), "")
    return _readable(first if len(first) <= 200 else f"{first[:197]}...")


def _readable(text: str) -> str:
    """Numba's names of types without what only it needs to know."""
    text = _FUNCTION.sub(lambda found: f"the function {found[1] or found[2]}".replace(".<locals>", ""), text)
    text = _FORM.sub(lambda found: f"`{found[1].lower()}` of ", text)
    text = _LITERAL.sub(r"\1", text).replace("unicode_type", "str").replace("<iv=None>", "")
    return text.replace("pyobject", "a Python object").strip()


# -------------------------------------------------------------------------------------------------- source lines


def definition_of(code: CodeType) -> Loc:
    """The line with `def`, which comes after the decorators."""
    if code.co_name != "<lambda>":
        for line in range(code.co_firstlineno, code.co_firstlineno + 50):
            if re.match(r"\s*(async\s+)?def\b", linecache.getline(code.co_filename, line)):
                return Loc(code.co_filename, line)
    return Loc(code.co_filename, code.co_firstlineno)


def check_parameters(code: CodeType) -> None:
    """Refuse parameters whose names cannot be written: a code object may have been made in any way."""
    count = code.co_argcount + code.co_kwonlyargcount
    flags = (inspect.CO_VARARGS, inspect.CO_VARKEYWORDS)
    for name in code.co_varnames[: count + sum(bool(code.co_flags & flag) for flag in flags)]:
        if not is_identifier(name):
            raise refuse(f"a parameter is called {name!r}, which is not a name", definition_of(code), "give it a name")


def find_line(code: CodeType, pattern: str) -> Loc | None:
    """The first line of a function that matches a pattern from its start."""
    lines = [line for _, _, line in code.co_lines() if line is not None]
    for line in range(code.co_firstlineno, max(lines, default=0) + 1):
        if re.match(pattern, linecache.getline(code.co_filename, line)):
            return Loc(code.co_filename, line)
    return None
