"""The real scalar functions of Python, `math` and NumPy at 50 digits, and functions rebuilt on them.

    precise = rebuild(lambda x: math.sin(x) if x > 0 else 0.0)
    with watch() as seen:
        precise(number(0.5))
    seen.outcomes        # [1]: the one comparison, `x > 0`, was decided by a positive difference
    seen.close           # None: no comparison was too near a tie to be trusted in double precision

`rebuild` keeps a function's bytecode and replaces what its global names mean (`math`, `np`, `abs`, `max`, ...), so what
runs is the program itself. Every decision taken on such a number (a comparison, a floor, a sign) is watched, because a
derivative means something only away from the places where a decision changes. Arrays are object arrays
(`tests.checking.multiprecision_arrays`). It does not know complex numbers.
"""

from __future__ import annotations

import math
import operator
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from mpmath import libmp  # type: ignore[import-untyped]
from mpmath.ctx_mp import MPContext  # type: ignore[import-untyped]

from tests.checking.multiprecision_arrays import table

mp = MPContext()
mp.dps = 50
Number = mp.mpf  # the type of the numbers of this context; operators are replaced on it below
CLOSE = 1e-9  # nearer than this, relatively, double precision may decide otherwise


class Watch:
    """The decisions made while a function ran, and the first one that was too close to trust.

    An exact tie is not too close: if it remains one when the inputs move, both sides are the same expression.
    """

    def __init__(self) -> None:
        self.outcomes: list[int] = []
        self.close: str | None = None

    def decide(self, a: Any, b: Any, what: str) -> None:
        """Note which of two numbers is larger; what differs by next to nothing is too close."""
        left, right = a._mpf_, mp.convert(b)._mpf_
        if libmp.fnan in (left, right):
            self.outcomes.append(2)
            return
        sign = libmp.mpf_cmp(left, right)
        self.outcomes.append(sign)
        if not sign:
            return
        difference = libmp.to_float(libmp.mpf_sub(left, right, 53, "n"))
        if math.isfinite(difference) and abs(difference) <= CLOSE * max(1.0, abs(float(a))):
            self.close = self.close or f"{what}: {difference:.1e} from a tie"


_watch = Watch()


@contextmanager
def watch() -> Iterator[Watch]:
    """Watch the decisions of what runs inside."""
    global _watch
    before, _watch = _watch, Watch()
    try:
        yield _watch
    finally:
        _watch = before


def number(x: Any) -> Any:
    """A float, exactly."""
    return mp.mpf(float(x))


def _is_number(x: object) -> bool:
    return isinstance(x, Number)


_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "__lt__": libmp.mpf_lt,
    "__le__": libmp.mpf_le,
    "__gt__": libmp.mpf_gt,
    "__ge__": libmp.mpf_ge,
    "__eq__": libmp.mpf_eq,
}


def _comparison(name: str) -> Callable[[Any, Any], Any]:
    compare = _COMPARISONS[name]

    def watched(self: Any, other: Any) -> Any:
        if not isinstance(other, Number | int | float):
            return NotImplemented
        _watch.decide(self, other, name.strip("_"))
        return compare(self._mpf_, mp.convert(other)._mpf_)

    return watched


def _sign(x: Any) -> int:
    """The sign of a number, watched."""
    return 1 if x > 0 else -1 if x < 0 else 0


def _floor(x: Any) -> Any:
    """The floor, an int; how near `x` is to an integer is watched."""
    if not _is_number(x):
        return math.floor(x)
    below = libmp.to_int(libmp.mpf_floor(x._mpf_))
    _watch.outcomes.append(below)
    nearest = libmp.to_int(libmp.mpf_nint(x._mpf_))
    distance = float(x - nearest)
    if distance and abs(distance) <= CLOSE:
        _watch.close = _watch.close or f"floor: {distance:.1e} from an integer"
    return below


def _trunc(x: Any) -> Any:
    return _floor(x) if _sign(x) >= 0 else -_floor(-x)


def _floordiv(a: Any, b: Any) -> Any:
    return mp.mpf(_floor(a / b))


def _mod(a: Any, b: Any) -> Any:
    return a - b * _floor(a / b)


def _round(x: Any, digits: int | None = None) -> Any:
    if digits is not None:
        scale = 10**digits
        return _round(x * scale) / mp.mpf(scale)
    if not _is_number(x):
        return round(x)
    _floor(x - 0.5)
    return libmp.to_int(libmp.mpf_nint(x._mpf_))


def _leaving_arrays(operation: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """The operation of numbers, which leaves arrays to NumPy."""
    return lambda a, b: NotImplemented if isinstance(b, np.ndarray) else operation(a, b)


for _name in ["add", "radd", "sub", "rsub", "mul", "rmul", "truediv", "rtruediv", "pow", "rpow"]:
    setattr(Number, f"__{_name}__", _leaving_arrays(getattr(Number, f"__{_name}__")))
for _name in _COMPARISONS:
    setattr(Number, _name, _comparison(_name))
Number.__ne__ = lambda self, other: not (self == other)  # noqa: SIM201
Number.__hash__ = object.__hash__
Number.__bool__ = lambda self: self != 0
Number.__mod__ = _mod
Number.__rmod__ = lambda b, a: _mod(mp.mpf(a), b)
Number.__floordiv__ = _floordiv
Number.__rfloordiv__ = lambda b, a: _floordiv(mp.mpf(a), b)
Number.__divmod__ = lambda a, b: (_floordiv(a, b), _mod(a, b))
Number.__abs__ = lambda x: x if _sign(x) >= 0 else -x
Number.__int__ = _trunc
Number.__round__ = _round
Number.__trunc__ = _trunc


def _int(x: Any) -> Any:
    return _trunc(x) if _is_number(x) else int(x)


def _float(x: Any) -> Any:
    return x if _is_number(x) else mp.mpf(x)


def _copysign(a: Any, b: Any) -> Any:
    if b == 0:
        _watch.close = _watch.close or "copysign: the sign of a zero, which these numbers do not have"
    return abs(a) if _sign(b) >= 0 else -abs(a)


def _maximum(a: Any, b: Any) -> Any:
    return a if a > b else b


def _minimum(a: Any, b: Any) -> Any:
    return a if a < b else b


def _clip(x: Any, low: Any, high: Any) -> Any:
    return _minimum(_maximum(_float(x), low), high)


def _fmod(a: Any, b: Any) -> Any:
    return a - b * _trunc(_float(a) / b)


def _sinc(x: Any) -> Any:
    return mp.mpf(1) if x == 0 else mp.sin(mp.pi * x) / (mp.pi * x)


def _pow(a: Any, b: Any) -> Any:
    return mp.mpf(a) ** b


def _logaddexp(a: Any, b: Any) -> Any:
    return mp.log(mp.exp(a) + mp.exp(b))


def _logaddexp2(a: Any, b: Any) -> Any:
    return mp.log(mp.mpf(2) ** a + mp.mpf(2) ** b) / mp.log(2)


def _cbrt(x: Any) -> Any:
    return mp.cbrt(x) if _sign(x) >= 0 else -mp.cbrt(-x)


def _where(condition: Any, a: Any, b: Any) -> Any:
    return a if condition else b


_SHARED: dict[str, Callable[..., Any]] = {
    **{name: getattr(mp, name) for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")},
    **{name: getattr(mp, name) for name in ("exp", "sqrt", "hypot")},
    "expm1": lambda x: mp.exp(x) - 1,  # the digits that cancel are there to lose
    "log1p": lambda x: mp.log(1 + x),
    "log2": lambda x: mp.log(x) / mp.log(2),
    "log10": lambda x: mp.log(x) / mp.log(10),
    "exp2": lambda x: mp.mpf(2) ** x,
    "cbrt": _cbrt,
    "radians": lambda x: x * mp.pi / 180,
    "degrees": lambda x: x * 180 / mp.pi,
    "copysign": _copysign,
    "fmod": _fmod,
    "isnan": lambda x: bool(mp.isnan(x)),
    "isinf": lambda x: bool(mp.isinf(x)),
    "isfinite": lambda x: bool(mp.isfinite(x)),
}
_MATH: dict[str, Callable[..., Any]] = {
    **_SHARED,
    **{name: getattr(mp, name) for name in ("asin", "acos", "atan", "asinh", "acosh", "atanh", "atan2", "gamma")},
    **{name: getattr(mp, name) for name in ("erf", "erfc")},
    "lgamma": lambda x: mp.log(abs(mp.gamma(x))),
    "log": lambda x, base=None: mp.log(x) if base is None else mp.log(x) / mp.log(base),
    "pow": _pow,
    "fabs": lambda x: abs(_float(x)),
    "floor": _floor,
    "ceil": lambda x: -_floor(-x),
    "trunc": _trunc,
}
_NUMPY: dict[str, Callable[..., Any]] = {
    **_SHARED,
    **{f"arc{name}": getattr(mp, f"a{name}") for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh", "tan2")},
    "log": mp.log,
    "deg2rad": _SHARED["radians"],
    "rad2deg": _SHARED["degrees"],
    "abs": lambda x: abs(x),
    "absolute": lambda x: abs(x),
    "fabs": lambda x: abs(_float(x)),
    "square": lambda x: x * x,
    "reciprocal": lambda x: 1 / _float(x),
    "negative": lambda x: -x,
    "positive": lambda x: +x,
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": lambda a, b: _float(a) / b,
    "true_divide": lambda a, b: _float(a) / b,
    "floor_divide": operator.floordiv,
    "mod": operator.mod,
    "remainder": operator.mod,
    "power": _pow,
    "float_power": _pow,
    "maximum": _maximum,
    "minimum": _minimum,
    "fmax": _maximum,
    "fmin": _minimum,
    "clip": _clip,
    "where": _where,
    "sign": lambda x: mp.mpf(_sign(x)) if _is_number(x) else int(np.sign(x)),
    "heaviside": lambda x, h: mp.mpf(h) if x == 0 else mp.mpf(1 if _sign(x) > 0 else 0),
    "sinc": _sinc,
    "floor": lambda x: mp.mpf(_floor(x)),
    "ceil": lambda x: mp.mpf(-_floor(-x)),
    "trunc": lambda x: mp.mpf(_trunc(x)),
    "fix": lambda x: mp.mpf(_trunc(x)),
    "rint": lambda x: mp.mpf(_round(x)),
    "round": lambda x, digits=0: mp.mpf(_round(x, digits or None)),
    "around": lambda x, digits=0: mp.mpf(_round(x, digits or None)),
    "logaddexp": _logaddexp,
    "logaddexp2": _logaddexp2,
    "float64": _float,
    "int64": _int,
    "int32": _int,
    "bool_": bool,
}
_BUILTINS: dict[Callable[..., Any], Callable[..., Any]] = {
    int: _int,
    float: _float,
    round: _round,
    # `max` and `min` compare, `abs` asks for a sign: they are watched as they are.
}


class _Module:
    """A module whose functions are those of the table and whose constants are those of the original."""

    def __init__(self, original: types.ModuleType, table: dict[str, Callable[..., Any]]) -> None:
        self._original = original
        self.__dict__.update(table)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._original, name)
        if callable(found):
            raise AttributeError(f"tests/checking/multiprecision.py has no {self._original.__name__}.{name}: add a row")
        return found


_ARRAYS = table(_NUMPY, number)
_MODULES = {math: _Module(math, _MATH), np: _Module(np, _ARRAYS)}
_FUNCTIONS = {
    **_BUILTINS,
    **{getattr(math, name): found for name, found in _MATH.items() if hasattr(math, name)},
    **{getattr(np, name): found for name, found in _ARRAYS.items() if hasattr(np, name)},
}


def rebuild(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same bytecode, defaults and closure, with what its global names mean replaced by this module's functions."""
    function = getattr(function, "py_func", function)
    scope: dict[str, Any] = {"__builtins__": {**vars(__import__("builtins")), "int": _int, "float": _float}}
    scope["__builtins__"]["round"] = _round
    for name, found in function.__globals__.items():
        if not name.startswith("__"):
            scope[name] = _replaced(found)
    closure = tuple(types.CellType(_replaced(cell.cell_contents)) for cell in function.__closure__ or ())
    rebuilt = types.FunctionType(function.__code__, scope, function.__name__, function.__defaults__, closure)
    rebuilt.__kwdefaults__ = function.__kwdefaults__
    return rebuilt


def _replaced(found: Any) -> Any:
    if isinstance(found, types.ModuleType):
        return _MODULES.get(found, found)
    if callable(found) and getattr(found, "__hash__", None) is not None and found in _FUNCTIONS:
        return _FUNCTIONS[found]
    if isinstance(found, types.FunctionType) and not found.__module__.startswith(("zygote_py", "numba", "pytest")):
        return _Late(found)
    if hasattr(found, "py_func"):
        return _Late(found)
    return found


class _Late:
    """A function that is rebuilt when it is first called: a module's functions may name each other."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._rebuilt: Callable[..., Any] | None = None

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        if self._rebuilt is None:
            self._rebuilt = rebuild(self._function)
        return self._rebuilt(*args, **keywords)
