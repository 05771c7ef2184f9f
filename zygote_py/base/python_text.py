"""Python functions that are written as text: the text of a module is executed here, and nowhere else.

    add = caller(operator.add, "a, b=None", "a, b", name="add")     # def add(a, b=None): return function(a, b)
    stub("f", ["x", "y"])                                           # def f(x, y): pass

Names in the text are those of parameters, or come from `Names` and `free`; it contains no other text of a user.
"""

from __future__ import annotations

import inspect
import keyword
import linecache
import re
from collections.abc import Iterable, Mapping, Sequence
from types import FunctionType
from typing import Any


class Names:
    """A source of unused names."""

    def __init__(self, taken: Iterable[str]) -> None:
        self._taken = set(taken)
        self._next: dict[str, int] = {}

    @property
    def taken(self) -> frozenset[str]:
        """The names that have been returned, and those that were taken before."""
        return frozenset(self._taken)

    def fresh(self, hint: str) -> str:
        """Return `hint` as a valid name, with the first number that makes it a new one if it is taken."""
        base = re.sub(r"\W", "_", hint, flags=re.ASCII).strip("_") or "t"
        if base[0].isdigit():
            base = f"t{base}"
        name = base
        if keyword.iskeyword(name) or name in self._taken:
            number = self._next.get(base, 1)
            while (name := f"{base}_{number}") in self._taken:
                number += 1
            self._next[base] = number + 1
        self._taken.add(name)
        return name


def free(name: str, taken: Iterable[str]) -> str:
    """Return `name`, followed by as many underscores as make it one that is not taken."""
    taken = set(taken)
    while name in taken:
        name += "_"
    return name


def execute(source: str, filename: str, namespace: dict[str, Any], *, shown: bool = True) -> None:
    """Execute the text of a module. If it is `shown`, tracebacks and `inspect.getsource` find it by the file's name."""
    if shown:
        linecache.cache[filename] = len(source), None, source.splitlines(keepends=True), filename
    exec(compile(source, filename, "exec"), namespace)


def define(
    text: str,
    name: str,
    namespace: Mapping[str, Any],
    *,
    module: str | None = None,
    at: Any = None,
    filename: str = "<string>",
) -> FunctionType:
    """Return the function `name` that a text defines, with the other names that it uses.

    It belongs to `module`, if that is given, and stands where the Python function `at` does, under its name.
    """
    scope = {**({} if module is None else {"__name__": module}), **namespace}
    execute(text, filename, scope, shown=False)
    made: FunctionType = scope[name]
    if at is not None:
        code = at.__code__
        made.__code__ = made.__code__.replace(
            co_name=code.co_name, co_filename=code.co_filename, co_firstlineno=code.co_firstlineno, co_linetable=b""
        )
        made.__name__ = made.__qualname__ = at.__name__
    return made


def captured(
    lines: Sequence[str], values: Mapping[str, Any], *, module: str | None = None, filename: str = "", **known: Any
) -> Any:
    """Return the function that lines define, with `values` as free variables and `known` as globals."""
    name = lines[0].removeprefix("def ").partition("(")[0]
    inside = "".join(f"    {line}\n" for line in lines)
    scope = {**({} if module is None else {"__name__": module}), **known}
    text = f"def make({', '.join(values)}):\n{inside}    return {name}\n"
    execute(text, filename or "<string>", scope, shown=bool(filename))
    return scope["make"](*values.values())


def parameters_text(parameters: Iterable[inspect.Parameter]) -> str:
    """Return the text of parameters in a definition, with all defaults as None."""
    bare = [each.replace(annotation=each.empty) for each in parameters]
    shown = [each if each.default is each.empty else each.replace(default=None) for each in bare]
    return str(inspect.Signature(shown))[1:-1]


def arguments_text(parameters: Iterable[inspect.Parameter]) -> str:
    """Return the text of a call that passes parameters on."""
    marks: dict[Any, str] = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    return ", ".join(
        f"{each.name}={each.name}" if each.kind is each.KEYWORD_ONLY else f"{marks.get(each.kind, '')}{each.name}"
        for each in parameters
    )


def caller(
    callee: Any,
    parameters: str,
    passed: str,
    *,
    name: str = "call",
    body: str = "return {call}",
    values: Mapping[str, Any] | None = None,
    module: str | None = None,
    at: Any = None,
) -> FunctionType:
    """Return a function of these parameters that calls another: `body` says what it does with the `call`.

    The names of `values` may stand in what is passed and in the body.
    """
    namespace = dict(values or {})
    called = free("function", {*re.findall(r"\w+", f"{parameters} {body}"), name, *namespace})
    namespace[called] = callee
    text = f"def {name}({parameters}):\n    {body.format(call=f'{called}({passed})')}\n"
    return define(text, name, namespace, module=module, at=at)


def stub(name: str, parameters: Sequence[str], defaults: tuple[Any, ...] = (), *, at: Any = None) -> FunctionType:
    """Return a function of these parameters, of which the last have defaults, that does nothing; see `define`."""
    made = define(f"def {name}({', '.join(parameters)}): pass\n", name, {}, at=at)
    made.__defaults__ = defaults or None
    return made
