"""Runs the adjoint of one instruction: as a straight line of Python source, plain or compiled.

    adjoint = expand_rule(operator.mul, (f64, f64), f64, 0)
    adjoint.names()                                  # ["x0", "x1", "y", "dy"]
    adjoint(x0=2.0, x1=3.0, y=6.0, dy=1.0)           # 3.0

It does not know blocks, nor the emission of the library.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numba import njit, types

from zygote_py.adjoints import rule_for
from zygote_py.adjoints.rules import Rule, expand
from zygote_py.adjoints.rules.helpers.special import HELPERS
from zygote_py.ir import Alpha, Const, Instr, Operand, Param, Type, Value, ops

f64, f32, i64 = types.float64, types.float32, types.int64
# Floats, an integer, truth values, complex numbers, the result and its adjoint.
NAMES = ("x0", "x1", "x2", "n1", "c0", "c1", "z0", "z1", "z2", "y", "dy")


@dataclass
class Adjoint:
    """A straight line of instructions and its outcome, over parameters x0, x1, ..., y and dy."""

    instrs: list[Instr] = field(default_factory=list)
    result: Operand = field(default_factory=lambda: Const(0.0, f64))
    arguments: dict[Value, str] = field(default_factory=dict)

    def lines(self, namespace: dict[str, Any], prefix: str = "t") -> tuple[list[str], str]:
        """The statements, and the expression of the outcome; what they call is put into the namespace."""
        names = dict(self.arguments)

        def text(operand: Operand) -> str:
            match operand:
                case Const(value, types.float32):
                    return f"np.float32({_literal(value)})"
                case Const(value, types.float64):
                    return _literal(value)
                case Const(value, types.complex128):
                    return f"complex({_literal(value.real)}, {_literal(value.imag)})"
                case Const(value, types.complex64):
                    return f"np.complex64(complex({_literal(value.real)}, {_literal(value.imag)}))"
                case Const(value, _):
                    return repr(value)
                case Alpha(value):
                    return names[value]
                case _:
                    return names[operand]

        lines = []
        for instr in self.instrs:
            name = f"{prefix}{len(lines)}"
            arguments = [text(arg) for arg in instr.args]
            if instr.op is ops.select:
                condition, then, orelse = arguments
                call = f"{then} if {condition} else {orelse}"
            else:
                callee = ops.name_of(instr.op).replace(".", "_")
                assert namespace.setdefault(callee, instr.op) is instr.op
                call = f"{callee}({', '.join(arguments)})"
            lines.append(f"{name} = {call}")
            names[instr] = name
        return lines, text(self.result)

    def __call__(self, **values: Any) -> Any:
        with np.errstate(all="ignore"):
            return self._plain(**values)

    @functools.cached_property
    def _plain(self) -> Callable[..., Any]:
        namespace: dict[str, Any] = {"np": np}
        lines, result = self.lines(namespace)
        body = "\n    ".join([*lines, f"return {result}"])
        exec(f"def plain({'=None, '.join(NAMES)}=None):\n    {body}", namespace)
        return namespace["plain"]


def _literal(value: float) -> str:
    return repr(value) if math.isfinite(value) else f"np.{'nan' if value != value else 'inf' if value > 0 else 'NINF'}"


def instruction(op: ops.Op, args: Sequence[Type | Const], type: Type) -> Instr:
    """A call of `op` on parameters of the given types and constants."""
    operands = (arg if isinstance(arg, Const) else Param(arg, f"{_letter(arg)}{k}") for k, arg in enumerate(args))
    return Instr(op, tuple(operands), type, "y")


def _letter(type: Type) -> str:
    letters = {types.Float: "x", types.Complex: "z", types.Integer: "n"}
    return next((letter for kind, letter in letters.items() if isinstance(type, kind)), "c")


def expand_instr(instr: Instr, index: int, rule: Rule | None = None) -> Adjoint:
    """The contribution of an instruction on parameters and constants to the adjoint of argument `index`."""
    found = rule or rule_for(instr)
    assert found is not None
    dy = Param(instr.type, "dy")
    adjoint = Adjoint(arguments={instr: "y", dy: "dy"})
    adjoint.arguments |= {arg: arg.hint for arg in instr.args if isinstance(arg, Value)}

    def emit(op: ops.Op, args: tuple[Operand, ...], type: Type) -> Instr:
        adjoint.instrs.append(Instr(op, args, type))
        return adjoint.instrs[-1]

    def alpha(operand: Operand) -> Operand:
        return Alpha(operand) if isinstance(operand, Value) else operand

    adjoint.result = expand(found, index, instr, dy, emit, alpha)
    return adjoint


def expand_rule(op: ops.Op, args: Sequence[Type | Const], type: Type, index: int) -> Adjoint:
    return expand_instr(instruction(op, args, type), index)


def compile_all(adjoints: Sequence[Adjoint]) -> tuple[Any, list[str]]:
    """One compiled function of (out, *NAMES) that stores the outcome of the k-th adjoint in out[k].

    And the names of its intermediate values, in order.
    """
    namespace: dict[str, Any] = {"np": np}
    body = []
    names = []
    for k, adjoint in enumerate(adjoints):
        lines, result = adjoint.lines(namespace, f"t{k}_")
        body += [*lines, f"out[{k}] = {result}"]
        names += [line.split(" = ")[0] for line in lines]
    for name, helper in HELPERS.items():
        if name in namespace:
            namespace[name] = njit(helper)
    exec(f"def together(out, {', '.join(NAMES)}):\n    " + "\n    ".join(body), namespace)
    return njit(namespace["together"]), names
