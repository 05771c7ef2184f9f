"""Keyword arguments of functions not written in Python, converted to positional arguments.

    np.where(condition=c, x=a, y=b)        np.where(c, a, b)
    x.clip(a_max=1.0)                      np.clip(x, None, 1.0)
    np.sum(a=x, axis=0)                    np.sum(x, 0)

The functions of NumPy that `zygote_py.library` has take keywords as any function does, and those that
`zygote_py.frontend.creation` has have the names there. Others are left as they are.
"""

from __future__ import annotations

import numpy as np
from numba import types

from zygote_py.frontend.values import Bundle
from zygote_py.ir.core import Const

_ROUND = ("a", "decimals", "out")
_CLIP = ("a", "a_min", "a_max", "out")
_NONE = Bundle(types.none, (Const(None, types.none),))
_ZERO = Bundle(types.int64, (Const(0, types.int64),))
_NAMES: dict[object, tuple[str, ...]] = {
    np.round: _ROUND,
    np.around: _ROUND,
    np.clip: _CLIP,
    np.where: ("condition", "x", "y"),
    np.angle: ("z", "deg"),
    np.sinc: ("x",),
    np.sum: ("a", "axis"),
    np.prod: ("a",),
    np.dot: ("a", "b", "out"),
    np.vdot: ("a", "b"),
}
# The value of an argument that is not given, though a later one is.
_DEFAULTS: dict[object, dict[str, Bundle]] = {
    np.round: {"decimals": _ZERO},
    np.around: {"decimals": _ZERO},
    np.clip: {"a_min": _NONE, "a_max": _NONE},
}
# The values equivalent to not giving the argument.
_WITHOUT = ("out",)


def by_position(
    callee: object, args: list[Bundle], keywords: dict[str, Bundle]
) -> tuple[list[Bundle], dict[str, Bundle]]:
    """Return the arguments of a call with keyword arguments at their positions, if these are known."""
    try:
        names = _NAMES.get(callee, ())
    except TypeError:  # it cannot be in a dictionary
        names = ()
    if len(args) > len(names) or not all(keyword in names for keyword in keywords):
        return args, keywords
    given = dict(zip(names, args, strict=False)) | keywords
    given = {
        name: arg for name, arg in given.items() if name not in _WITHOUT or not isinstance(arg.type, types.NoneType)
    }
    last = max((names.index(name) for name in given), default=-1)
    if callee is np.clip:
        last = max(last, names.index("a_max"))
    defaults = _DEFAULTS.get(callee, {})
    found = [given.get(name, defaults.get(name)) for name in names[: last + 1]]
    placed = [arg for arg in found if arg is not None]
    return (placed, {}) if len(placed) == len(found) else (args, keywords)
