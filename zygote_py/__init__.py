"""Reverse-mode automatic differentiation for Numba functions.

from zygote_py import gradient

@gradient
def df(x, y): ...
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from zygote_py.adjoints.errors import DifferentiationError
from zygote_py.api import GradientFunction, gradient, value_and_gradient

if TYPE_CHECKING:
    from zygote_py.checkpoints import checkpoint, checkpointed
    from zygote_py.custom import adjoint, check_adjoint, hook, ignore, stop_gradient
    from zygote_py.derivative_function import DerivativeFunction
    from zygote_py.directions import (
        derivative,
        hessian,
        hessian_diagonal,
        hvp,
        jacobian,
        jvp,
        pushforward,
        value_gradient_hessian,
    )
    from zygote_py.gradient_check import GradientReport, check_gradient
    from zygote_py.inverses import check_inverse, inverse
    from zygote_py.pullbacks import Pullback, pullback
    from zygote_py.scipy_functions import (
        ScipyEquations,
        ScipyObjective,
        ScipyOde,
        ScipyResiduals,
        scipy_objective,
        scipy_ode,
        scipy_residuals,
        scipy_root,
    )
    from zygote_py.sparse import SparseHessian, SparseJacobian

__all__ = [
    "DerivativeFunction",
    "DifferentiationError",
    "GradientFunction",
    "GradientReport",
    "Pullback",
    "ScipyEquations",
    "ScipyObjective",
    "ScipyOde",
    "ScipyResiduals",
    "SparseHessian",
    "SparseJacobian",
    "__version__",
    "adjoint",
    "check_adjoint",
    "check_gradient",
    "check_inverse",
    "checkpoint",
    "checkpointed",
    "derivative",
    "gradient",
    "hessian",
    "hessian_diagonal",
    "hook",
    "hvp",
    "ignore",
    "inverse",
    "jacobian",
    "jvp",
    "pullback",
    "pushforward",
    "scipy_objective",
    "scipy_ode",
    "scipy_residuals",
    "scipy_root",
    "stop_gradient",
    "value_and_gradient",
    "value_gradient_hessian",
]
__version__ = "0.1.0"

# Imported when they are asked for, as they need the compiler: a gradient out of the cache does not.
_LATER = {
    "DerivativeFunction": "zygote_py.derivative_function",
    "GradientReport": "zygote_py.gradient_check",
    "Pullback": "zygote_py.pullbacks",
    "ScipyEquations": "zygote_py.scipy_functions",
    "ScipyObjective": "zygote_py.scipy_functions",
    "ScipyOde": "zygote_py.scipy_functions",
    "ScipyResiduals": "zygote_py.scipy_functions",
    "SparseHessian": "zygote_py.sparse",
    "SparseJacobian": "zygote_py.sparse",
    "adjoint": "zygote_py.custom",
    "check_adjoint": "zygote_py.custom",
    "check_gradient": "zygote_py.gradient_check",
    "check_inverse": "zygote_py.inverses",
    "checkpoint": "zygote_py.numba_adapter.checkpoints",  # which makes it known to Numba
    "checkpointed": "zygote_py.numba_adapter.checkpoints",
    "derivative": "zygote_py.directions",
    "hessian": "zygote_py.directions",
    "hessian_diagonal": "zygote_py.directions",
    "hook": "zygote_py.custom",
    "hvp": "zygote_py.directions",
    "ignore": "zygote_py.custom",
    "inverse": "zygote_py.inverses",
    "jacobian": "zygote_py.directions",
    "jvp": "zygote_py.directions",
    "pullback": "zygote_py.pullbacks",
    "pushforward": "zygote_py.directions",
    "scipy_objective": "zygote_py.scipy_functions",
    "scipy_ode": "zygote_py.scipy_functions",
    "scipy_residuals": "zygote_py.scipy_functions",
    "scipy_root": "zygote_py.scipy_functions",
    "stop_gradient": "zygote_py.custom",
    "value_gradient_hessian": "zygote_py.directions",
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(importlib.import_module(_LATER[name]), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER})
