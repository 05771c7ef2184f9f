"""Reverse-mode automatic differentiation for Numba functions.

from zygote_py import gradient

@gradient
def df(x, y): ...
"""

from zygote_py.adjoints.errors import DifferentiationError
from zygote_py.api import GradientFunction, gradient, value_and_gradient
from zygote_py.checkpoint import checkpoint
from zygote_py.custom import adjoint, check_adjoint, hook, ignore, stop_gradient
from zygote_py.pullback import Pullback, pullback

__all__ = [
    "DifferentiationError",
    "GradientFunction",
    "Pullback",
    "__version__",
    "adjoint",
    "check_adjoint",
    "checkpoint",
    "gradient",
    "hook",
    "ignore",
    "pullback",
    "stop_gradient",
    "value_and_gradient",
]
__version__ = "0.1.0"
