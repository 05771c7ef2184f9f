"""Properties of Python's operators and built-in functions, and of `math`."""

from __future__ import annotations

import builtins
import math
import operator

from numba import types

from zygote_py.ir.ops.table import COMPARISONS, Cost, Effect, Family, Op, Role, operation

_SYNTAX: dict[Op, str] = {
    operator.add: "a + b",
    operator.sub: "a - b",
    operator.mul: "a * b",
    operator.truediv: "a / b",
    operator.floordiv: "a // b",
    operator.mod: "a % b",
    operator.pow: "a ** b",
    operator.matmul: "a @ b",
    operator.and_: "a & b",
    operator.or_: "a | b",
    operator.xor: "a ^ b",
    operator.lshift: "a << b",
    operator.rshift: "a >> b",
    operator.neg: "-a",
    operator.pos: "+a",
    operator.invert: "~a",
    operator.not_: "not a",
    operator.lt: "a < b",
    operator.le: "a <= b",
    operator.eq: "a == b",
    operator.ne: "a != b",
    operator.ge: "a >= b",
    operator.gt: "a > b",
    operator.is_: "a is b",
    operator.is_not: "a is not b",
}

for _function, _text in _SYNTAX.items():
    operation(_function, name=_function.__name__, effect=Effect.PURE, syntax=_text, fresh=True)
for _function in (abs, bool, complex, divmod, float, int, len, max, min, round, slice):
    operation(_function, name=_function.__name__, effect=Effect.PURE)
operation(builtins.pow, name="builtins.pow", effect=Effect.PURE)
operation(len, role=Role.LENGTH)

operation(operator.add, operator.sub, operator.mul, family=Family.ARITHMETIC, elements=2, remade=True, hoistable=True)
operation(operator.add, operator.mul, commutative=True)
operation(operator.add, operator.sub, operator.neg, sums=True)
operation(operator.mul, operator.truediv, operator.pow, scales=True)
operation(operator.neg, family=Family.NEGATION, elements=1, remade=True, hoistable=True)
operation(operator.pos, family=Family.IDENTITY, elements=1)
operation(operator.invert, family=Family.INVERSION, elements=1)
operation(builtins.abs, elements=1)
operation(operator.truediv, family=Family.TRUE_DIVISION, elements=2)
operation(operator.floordiv, operator.mod, family=Family.WHOLE_DIVISION, elements=2)
operation(operator.truediv, operator.floordiv, operator.mod, cost=Cost.DIVISION)
operation(operator.pow, family=Family.POWER, elements=2, cost=Cost.FUNCTION)
operation(
    *(operator.truediv, operator.floordiv, operator.mod, divmod, operator.pow, builtins.pow), raises_for_zero=True
)
operation(
    *(operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift), family=Family.BITWISE, elements=2
)
operation(operator.and_, operator.or_, operator.not_, remade=True)
operation(operator.and_, operator.not_, truth=True)
operation(operator.matmul, shapes_decide=True, scalar_product=True)
operation(min, max, slice, remade=True, hoistable=True)
operation(float, int, bool, remade=True)

for _comparison in COMPARISONS.values():
    operation(_comparison.op, family=Family.COMPARISON, elements=2, comparison=_comparison, remade=True, truth=True)

operation(float, int, bool, complex, round, family=Family.CAST)
operation(float, cast_to=types.float64)
operation(int, cast_to=types.int64)
operation(bool, cast_to=types.boolean)
operation(complex, cast_to=types.complex128)

operation(operator.add, operator.sub, operator.neg, operator.pos, exact="fic")
operation(operator.mul, abs, exact="fi")
operation(operator.truediv, math.sqrt, exact="f")
operation(operator.floordiv, operator.mod, operator.lshift, operator.rshift, operator.invert, max, min, exact="i")
operation(operator.and_, operator.or_, operator.xor, exact="ib")
operation(complex, exact="p")

operation(
    *(operator.neg, operator.pos, operator.invert, builtins.abs, operator.add, operator.sub, operator.mul),
    *(operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift),
    *(operator.lt, operator.le, operator.eq, operator.ne, operator.ge, operator.gt),
    duplicable=True,
)
operation(math.sqrt, cost=Cost.DIVISION)
operation(math.floor, math.ceil, math.trunc, math.fabs, math.copysign, cost=Cost.CHEAP)
operation(print, silent=True)
