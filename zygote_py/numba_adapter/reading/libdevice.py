"""Stand-ins for the functions of `numba.cuda.libdevice`: those of floats whose derivative is known.

from numba.cuda import libdevice
libdevice.sinf(x)                   # of single precision; `libdevice.sin` of double
libdevice.fast_expf(x)              # of single precision only, with few bits right
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

from numba import types

from zygote_py.numba_adapter.base.internals import infer_global, make_concrete_template, signature

_OF_ONE = """
    acos acosh asin asinh atan atanh cbrt ceil cos cosh erf erfc exp exp2 exp10 expm1 fabs floor lgamma log log10 log1p
    log2 rint rsqrt sin sinh sqrt tan tanh tgamma trunc
"""
_OF_TWO = "atan2 copysign fdim fmax fmin fmod hypot pow"
_OF_THREE = "fma"
# How many numbers each takes, by its name in double precision.
LIBDEVICE_ARGUMENTS = {
    **dict.fromkeys(_OF_ONE.split(), 1),
    **dict.fromkeys(_OF_TWO.split(), 2),
    **dict.fromkeys(_OF_THREE.split(), 3),
}
_FAST_OF_ONE = "fast_sinf fast_cosf fast_tanf fast_expf fast_exp10f fast_logf fast_log2f fast_log10f"
FAST_ARGUMENTS = {**dict.fromkeys(_FAST_OF_ONE.split(), 1), "fast_powf": 2, "fast_fdividef": 2}


def make_libdevice(stand_in: Callable[[str], Callable[..., Any]]) -> ModuleType:
    """Return the module that takes the place of `numba.cuda.libdevice`, known to Numba."""
    module = ModuleType("libdevice")
    for name, count in LIBDEVICE_ARGUMENTS.items():
        _add(module, name, stand_in(name), types.float64, count)
        _add(module, f"{name}f", stand_in(f"{name}f"), types.float32, count)
    for name, count in FAST_ARGUMENTS.items():
        _add(module, name, stand_in(name), types.float32, count)
    return module


def _add(module: ModuleType, name: str, function: Callable[..., Any], kind: Any, count: int) -> None:
    setattr(module, name, function)
    infer_global(function, types.Function(make_concrete_template(name, function, [signature(kind, *[kind] * count)])))
