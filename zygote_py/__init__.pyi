"""The public names, and the modules that define them; each is imported when it is first used."""

from .adjoints.errors import DifferentiationError as DifferentiationError
from .api.compilation import compile as compile, njit as njit
from .api.custom_rules import (
    adjoint as adjoint,
    check_adjoint as check_adjoint,
    hook as hook,
    ignore as ignore,
    stop_gradient as stop_gradient,
)
from .api.directions import (
    derivative as derivative,
    hessian as hessian,
    hessian_diagonal as hessian_diagonal,
    hvp as hvp,
    jacobian as jacobian,
    jvp as jvp,
    pushforward as pushforward,
    value_gradient_hessian as value_gradient_hessian,
)
from .api.gradient import (
    GradientFunction as GradientFunction,
    gradient as gradient,
    value_and_gradient as value_and_gradient,
)
from .api.gradient_check import GradientReport as GradientReport, check_gradient as check_gradient
from .api.implicit import implicit as implicit
from .api.inverses import check_inverse as check_inverse, inverse as inverse
from .api.kernels import adjoint_kernel as adjoint_kernel, vectorize as vectorize
from .api.scipy import (
    ScipyEquations as ScipyEquations,
    ScipyObjective as ScipyObjective,
    ScipyOde as ScipyOde,
    ScipyResiduals as ScipyResiduals,
    scipy_objective as scipy_objective,
    scipy_ode as scipy_ode,
    scipy_residuals as scipy_residuals,
    scipy_root as scipy_root,
)
from .api.sparse import SparseHessian as SparseHessian, SparseJacobian as SparseJacobian
from .numba_adapter.target.checkpoints import checkpoint as checkpoint, checkpointed as checkpointed
from .runtime.compiled_function import DerivativeFunction as DerivativeFunction
from .runtime.plan import Plan as Plan
from .runtime.pullbacks import Pullback as Pullback, pullback as pullback

__version__: str
