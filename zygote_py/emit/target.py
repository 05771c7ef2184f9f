"""The text of an emitted module, for a compiler or for plain Python.

    emit(joint, name="pow_gradient", target=NJIT)       import math ... @njit ... def pow_gradient(x, n): ...

`zygote_py.numba_adapter.target.njit` compiles what is built here; another compiler needs a `Target` here and its
decorator there. The same function always yields the same text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from zygote_py.base import Names, stage
from zygote_py.emit.source import function_text
from zygote_py.emit.syntax.names import Module
from zygote_py.emit.syntax.standalone import Emitted
from zygote_py.ir import (
    Function,
    InternalError,
    Loc,
    functions_of,
    is_identifier,
    routines_of,
    verify_orders,
    with_limits,
)
from zygote_py.ir.arrays.measures.flat_loops import flatten_loops
from zygote_py.ir.lazy_dataclass import dataclass
from zygote_py.ir.ops.helpers import HELPERS
from zygote_py.ir.passes.lanes.iterations import iterations_in_lanes
from zygote_py.ir.passes.lanes.sums import reorder_sums
from zygote_py.ir.passes.threads.chunks import run_in_threads


@dataclass(frozen=True, slots=True)
class Target:
    """The compiler that a module is written for: the decorator of its functions, and where this is imported from.

    The functions of a device run on threads that have arrays of their own, and allocate no others.
    """

    decorator: str
    module: str
    is_device: bool = False
    is_kernel: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """The names that the module needs for it."""
        return (self.decorator.partition(".")[0],) if self.decorator else ()

    def imports(self) -> list[str]:
        """Return the lines that import the decorator."""
        return [f"from {self.module} import {name}" for name in self.names]

    def above(self, options: Mapping[str, object]) -> list[str]:
        """Return the lines above a function that is compiled with these options."""
        if not self.decorator:
            return []
        given = {"device": True, **options} if self.is_device and not self.is_kernel else options
        written = ", ".join(f"{name}={_option(value)}" for name, value in given.items())
        return [f"@{self.decorator}({written})" if written else f"@{self.decorator}"]


PYTHON = Target("", "")
NJIT = Target("njit", "numba")
CUDA = Target("cuda.jit", "numba", is_device=True)
KERNEL = Target("cuda.jit", "numba", is_device=True, is_kernel=True)


def _option(value: object) -> str:
    return f"{{{', '.join(sorted(map(repr, value)))}}}" if isinstance(value, set | frozenset) else repr(value)


@stage("emission")
def emit(
    function: Function,
    *,
    name: str,
    target: Target = PYTHON,
    options: Mapping[str, object] | None = None,
    defaults: Mapping[str, object] | None = None,
    notes: Sequence[str] = (),
) -> Emitted:
    """Return `function` as a Python module.

    Parameters
    ----------
    function : Function
        A function in SSA form, with a reducible graph and without alphas.
    name : str
        The name of the emitted function.
    target : Target, optional
        What the functions of the module are compiled by. By default they are plain Python.
    options : mapping, optional
        The options of the decorator, also for routines that have none of their own.
    defaults : mapping, optional
        The values of the parameters that have a default.
    notes : sequence of str, optional
        Comments above the function.

    Returns
    -------
    Emitted
        The source, the name, and the globals of the module.

    Raises
    ------
    InternalError
        If a name is not an identifier, or the function cannot be written.
    """
    options = options or {}
    routines = routines_of(function)
    functions = [function, *(routine.function for routine in routines)]
    reserved = [name, *target.names, *(param.hint for each in functions for param in each.params)]
    if wrong := [each for each in reserved if not is_identifier(each)]:
        raise InternalError(f"emit: {wrong[0]!r} is not a name")
    module = Module(Names(reserved), is_device=target.is_device)
    for each in functions:
        module.reserve(each)
    texts = []
    for routine in reversed(routines):
        own = routine.function.options
        above = target.above(own if own and own != function.options else options)
        texts.append(function_text(routine.function, module.routine(routine), module, above, {}))
    above = [*(f"# {note}" for note in notes), *target.above(options)]
    texts.append(function_text(function, name, module, above, defaults or {}))
    imports = [*module.imports(), *target.imports()]
    plain = target.above({})
    parts = [
        line
        for group in (imports, module.optional_imports(plain), module.definitions())
        if group
        for line in ("", *group)
    ]
    while parts and not parts[0]:
        parts.pop(0)
    parts += ["", ""] if parts else []
    for helper in module.helpers.values():
        parts += [*plain, helper, "", ""]
    if module.has_dataclasses and plain:
        texts.append("\n".join(module.without_dataclasses(name)))
    parts.append("\n\n\n".join(texts))
    files = {helper.__code__.co_filename for helper in HELPERS.values()}
    of_rules = frozenset(
        module.routine(routine)
        for routine in routines
        if (loc := routine.function.loc) is not None and loc.file in files
    )
    return Emitted("\n".join(parts) + "\n", name, dict(module.globals), of_rules)


def emit_and_widen(
    function: Function,
    name: str,
    options: Mapping[str, object],
    defaults: Mapping[str, object],
    notes: Sequence[str],
) -> Emitted:
    """Return a function as a module for Numba, whose text is that of the function as it is.

    Where iterations are independent, Numba gets several at a time, and with `parallel=True` threads that run them. The
    function may be changed. Raises InternalError if arrays in several orders are merged as one: that costs nothing to
    look for, and would be a wrong number.
    """
    function = with_limits(function)
    for each in functions_of(function):
        verify_orders(each)
    emitted = emit(function, name=name, target=NJIT, options=options, defaults=defaults, notes=notes)
    if not widen(function, options).is_changed:
        return emitted
    options = {each: value for each, value in options.items() if each != "parallel"}
    return replace(emitted, compiled=emit(function, name=name, target=NJIT, options=options, defaults=defaults))


@dataclass(frozen=True, slots=True)
class Widened:
    """Where the loops are whose iterations run side by side, or in threads, and whether a function has been changed."""

    in_lanes: Sequence[Loc | None] = ()
    in_threads: Sequence[Loc | None] = ()
    is_changed: bool = False


def widen(function: Function, options: Mapping[str, object]) -> Widened:
    """Change a function to what Numba gets in its place, with the options of its decorator."""
    if options.get("boundscheck"):
        return Widened()
    in_threads = run_in_threads(function)
    in_lanes: list[Loc | None] = []
    is_changed = bool(in_threads)
    for each in functions_of(function):
        if not each.options.get("boundscheck"):
            found = iterations_in_lanes(each)
            in_lanes += found
            changes = (bool(found), flatten_loops(each), reorder_sums(each))
            is_changed = is_changed or any(changes)
    return Widened(in_lanes, in_threads, is_changed)
