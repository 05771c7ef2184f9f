"""Reverse-mode automatic differentiation for Numba functions.

from zygote_py import gradient

@gradient
def df(x, y): ...
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from zygote_py.adjoints.errors import DifferentiationError
from zygote_py.api.gradient import GradientFunction, gradient, value_and_gradient

if TYPE_CHECKING:
    from zygote_py.api.custom_rules import adjoint, check_adjoint, hook, ignore, stop_gradient
    from zygote_py.api.directions import (
        derivative,
        hessian,
        hessian_diagonal,
        hvp,
        jacobian,
        jvp,
        pushforward,
        value_gradient_hessian,
    )
    from zygote_py.api.gradient_check import GradientReport, check_gradient
    from zygote_py.api.inverses import check_inverse, inverse
    from zygote_py.api.scipy import (
        ScipyEquations,
        ScipyObjective,
        ScipyOde,
        ScipyResiduals,
        scipy_objective,
        scipy_ode,
        scipy_residuals,
        scipy_root,
    )
    from zygote_py.api.sparse import SparseHessian, SparseJacobian
    from zygote_py.base.checkpoints import checkpoint, checkpointed
    from zygote_py.runtime.compiled_function import DerivativeFunction
    from zygote_py.runtime.pullbacks import Pullback, pullback

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
    "DerivativeFunction": "zygote_py.runtime.compiled_function",
    "GradientReport": "zygote_py.api.gradient_check",
    "Pullback": "zygote_py.runtime.pullbacks",
    "ScipyEquations": "zygote_py.api.scipy",
    "ScipyObjective": "zygote_py.api.scipy",
    "ScipyOde": "zygote_py.api.scipy",
    "ScipyResiduals": "zygote_py.api.scipy",
    "SparseHessian": "zygote_py.api.sparse",
    "SparseJacobian": "zygote_py.api.sparse",
    "adjoint": "zygote_py.api.custom_rules",
    "check_adjoint": "zygote_py.api.custom_rules",
    "check_gradient": "zygote_py.api.gradient_check",
    "check_inverse": "zygote_py.api.inverses",
    "checkpoint": "zygote_py.numba_adapter.target.checkpoints",  # which makes it known to Numba
    "checkpointed": "zygote_py.numba_adapter.target.checkpoints",
    "derivative": "zygote_py.api.directions",
    "hessian": "zygote_py.api.directions",
    "hessian_diagonal": "zygote_py.api.directions",
    "hook": "zygote_py.api.custom_rules",
    "hvp": "zygote_py.api.directions",
    "ignore": "zygote_py.api.custom_rules",
    "inverse": "zygote_py.api.inverses",
    "jacobian": "zygote_py.api.directions",
    "jvp": "zygote_py.api.directions",
    "pullback": "zygote_py.runtime.pullbacks",
    "pushforward": "zygote_py.api.directions",
    "scipy_objective": "zygote_py.api.scipy",
    "scipy_ode": "zygote_py.api.scipy",
    "scipy_residuals": "zygote_py.api.scipy",
    "scipy_root": "zygote_py.api.scipy",
    "stop_gradient": "zygote_py.api.custom_rules",
    "value_gradient_hessian": "zygote_py.api.directions",
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(importlib.import_module(_LATER[name]), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER})
