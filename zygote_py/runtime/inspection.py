"""The methods of a derivative that show what it is compiled from and to: IR, source, plan, LLVM's and machine code."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from zygote_py import compiler, numba_adapter
from zygote_py.ir import Type, parse_types
from zygote_py.runtime.tracebacks import shortening

if TYPE_CHECKING:
    from zygote_py.runtime.plan import Plan


class Inspected:
    """The part of `DerivativeFunction` that shows things. Each method takes arguments or types, as `source` does."""

    @shortening
    def primal_ir(self: Any, *args: Any) -> str:
        """Return the IR of the function for these arguments, or types: typed SSA in canonical form; see `source`.

        It includes what the adjoint needs of it: shadows of arrays, and copies of contents.
        """
        text: str = self._inspect(args).primal_text
        return text

    @shortening
    def adjoint_ir(self: Any, *args: Any) -> str:
        """Return the IR of the adjoint for these arguments, or types; `@v` is the value that `%v` had. See `source`."""
        text: str = self._inspect(args).adjoint_text
        return text

    @shortening
    def source(self: Any, *args: Any) -> str:
        """Return the Python source that computes the derivative for these arguments.

        The source needs NumPy and Numba only, and without the decorator NumPy only.

        Parameters
        ----------
        *args : object
            An argument or its Numba type for each parameter; or all types in one string, as on the command line:
            `df.source("f64[:], f64")`. If the only argument is a string, pass its type: `df.source("str")`.

        Returns
        -------
        str
            A module that defines the function.

        Raises
        ------
        ValueError
            If a string does not name types.
        """
        of, argument_types = self._inspected(args)
        source: str = of._compile(argument_types)[1].source
        return source

    @shortening
    def compile(self: Any, *args: Any) -> None:
        """Compile the derivative for these arguments, or types, ahead of the first call; see `source`.

        Nothing of the function runs. Captured variables count with their present types.
        """
        of, argument_types = self._inspected(args)
        if numba_adapter.jit_is_disabled():
            of._compile(argument_types)
        else:
            of._ready(argument_types)

    @shortening
    def plan(self: Any, *args: Any) -> Plan:
        """Return what the derivative keeps, recomputes and allocates for these arguments, or types; nothing runs.

        Parameters
        ----------
        *args : object
            Arguments, types, or one string with all types, as for `source`. The sizes of arrays and the values of
            integers count: with them `plan.bytes` is a number where it follows from them.

        Returns
        -------
        Plan
            Its text is `str(plan)`, its data `plan.as_dict()`.

        Examples
        --------
        >>> import numpy as np
        >>> import zygote_py as zg
        >>> def total(x):
        ...     s = 0.0
        ...     for i in range(len(x)):
        ...         s = s * x[i] + np.exp(x[i])
        ...     return s
        >>> zg.gradient(total).plan(np.ones(1000)).bytes
        24000
        """
        of, argument_types = self._inspected(args)
        given = () if len(args) == 1 and isinstance(args[0], str) else of._bind(args, {})
        plan: Plan = of._plan(argument_types, list(map(_size, given)))
        return plan

    def _plan(self: Any, argument_types: tuple[Type, ...], sizes: Sequence[object]) -> Plan:
        """Return the plan for types, and for the shapes and integers among some sizes."""
        from zygote_py.runtime.plan import make_plan  # with parts of the compiler, which a second process does without

        return make_plan(f"{self.form} of {self.__name__}", self._request, argument_types, sizes)

    def inspect_llvm(self: Any, *args: Any) -> str:
        """Return the optimised LLVM IR of the derivative for these arguments, or types; see `source`."""
        text: str = self._native(numba_adapter.llvm_text, args)
        return text

    def inspect_asm(self: Any, *args: Any) -> str:
        """Return the machine code of the derivative for these arguments, or types; see `source`."""
        text: str = self._native(numba_adapter.asm_text, args)
        return text

    def _inspected(self: Any, args: tuple[Any, ...]) -> tuple[Any, tuple[Type, ...]]:
        """Return the function for this number of arguments, and their types, which a string may name."""
        args = parse_types(args[0]) if len(args) == 1 and isinstance(args[0], str) else args
        of = self._of(self.form.count(args)) if self._star else self
        return of, of._types(of._bind(args, {}))

    def _inspect(self: Any, args: tuple[Any, ...]) -> compiler.Compiled:
        of, argument_types = self._inspected(args)
        with numba_adapter.COMPILER_LOCK:
            now, kernel = of._compile(argument_types)
            if kernel.compiled is None:
                kernel.compiled, _ = compiler.compile_gradient(of._request, argument_types, now.hidden)
            compiled: compiler.Compiled = kernel.compiled
            return compiled

    def _native(self: Any, show: Callable[[Any, tuple[Type, ...]], str], args: tuple[Any, ...]) -> str:
        of, argument_types = self._inspected(args)
        kernel, dispatcher, signature = of._ready(argument_types)
        if numba_adapter.is_from_cache(dispatcher, signature):
            dispatcher = of._without_cache(dispatcher, kernel)
            dispatcher.compile(signature)
        return show(dispatcher, signature)


def _size(argument: object) -> object:
    """Return the shape of an array, an integer as such, and other arguments as they are."""
    if isinstance(argument, bool | int | np.integer):
        return int(argument)
    return getattr(argument, "shape", argument)
