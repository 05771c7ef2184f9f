"""Sparse Jacobians and Hessians, which `jacobian` and `hessian` return if `sparsity` is passed.

    H = SparseHessian(rosenbrock)
    H(x)                            # a scipy.sparse.csr_array with as many entries as the Hessian may have

The pattern is determined for the arguments of each call, by a run of the function (for a Hessian, of its gradient) that
computes sets of indices instead of numbers (`zygote_py.adjoints.forward.dependence`). Columns that do not share a row
are computed in one direction (`zygote_py.runtime.colouring`), and several directions at once
(`zygote_py.drivers.sparse`). As long as the sets do not change, the pattern, the directions and the positions of the
entries are reused. If the control flow does not depend on numbers (`zygote_py.adjoints.analysis.data_independence`),
the sets are not computed again.

A pattern does not hold for other arguments: a branch, or an index computed from a float, may differ there.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from zygote_py import numba_adapter, runtime
from zygote_py.adjoints import refuse
from zygote_py.compiler import check_fit
from zygote_py.drivers.sparse import Dependence, Products, Weighed
from zygote_py.ir import Loc
from zygote_py.ir.lazy_dataclass import dataclass
from zygote_py.runtime import DerivativeFunction, shortening

if TYPE_CHECKING:
    from scipy.sparse import csr_array

_PRICE = 4  # of a row by itself, which takes a gradient, in directions
_GAIN = 16  # so many directions less are worth compiling the gradient


@dataclass(frozen=True, eq=False)
class _Plan:
    """How a matrix is computed: in which `directions`, and from which direction and element each entry is read.

    `of_alone` selects the entries in the rows `alone`. A plan is valid as long as the detected sets equal `found`, or
    the values that alone determine them equal `given`.
    """

    found: tuple[Any, ...]
    given: tuple[Any, ...] | None
    pattern: runtime.Pattern
    directions: Any
    direction: runtime.Ints
    element: runtime.Ints
    alone: runtime.Ints
    of_alone: runtime.Mask

    def fits(self, found: tuple[Any, ...]) -> bool:
        """Return whether the plan is valid for these sets."""
        return all(map(np.array_equal, self.found, found))

    def matrix(self, values: Any) -> csr_array:
        """Return the matrix with these entries."""
        from scipy.sparse import csr_array

        pattern = self.pattern
        return csr_array((values, pattern.columns.copy(), pattern.starts.copy()), shape=pattern.shape)


class _Sparse:
    """The common part of both classes: the function, what to differentiate, and the plan of the last call."""

    _order = 1

    def __init__(self, f: Callable[..., Any], wrt: int | str = 0, sparsity: Any = "detect") -> None:
        functools.update_wrapper(self, f, updated=())
        self.primal = f
        self.wrt = wrt
        if not isinstance(wrt, int | np.integer | str) or isinstance(wrt, bool):
            raise self._refused(f"{self} with respect to {wrt!r}", "name one argument, an array")
        self.sparsity = sparsity
        self._given = _given(sparsity)
        self._dependence: DerivativeFunction[..., Any] = DerivativeFunction(f, Dependence(wrt, order=self._order))
        self._products: DerivativeFunction[..., Any] = DerivativeFunction(f, Products(wrt, order=self._order))
        self._last: _Plan | None = None

    def __str__(self) -> str:
        return f"a sparse {'Jacobian' if self._order == 1 else 'Hessian'}"

    def __repr__(self) -> str:
        return f"<{self} of {getattr(self.primal, '__qualname__', self.primal)}>"

    def __reduce__(self) -> Any:
        return type(self), (self.primal, self.wrt, self.sparsity)

    @shortening
    def __call__(self, *args: Any, **kwargs: Any) -> csr_array:
        """Return the matrix at these arguments."""
        plan, given, x = self._planned_for(args, kwargs)
        return plan.matrix(self._values(plan, given, x))

    @shortening
    def pattern(self, *args: Any, **kwargs: Any) -> csr_array:
        """Return the sparsity pattern at these arguments, as a sparse matrix of truth values."""
        plan, *_ = self._planned_for(args, kwargs)
        return plan.matrix(np.ones(len(plan.pattern.columns), np.bool_))

    @shortening
    def directions(self, *args: Any, **kwargs: Any) -> int:
        """Return the number of directions in which the function, or for a Hessian its gradient, is differentiated."""
        plan, *_ = self._planned_for(args, kwargs)
        return len(plan.directions)

    # -------------------------------------------------------------------------------------------------------- a call

    def _values(self, plan: _Plan, args: tuple[Any, ...], x: Any) -> Any:
        """Return the entries, in the order of the pattern."""
        directions = plan.directions
        if self._given is not None:
            directions = np.concatenate((directions, _any_direction(x)))
        values = np.zeros(len(plan.pattern.columns), x.dtype)
        if len(directions):
            products = self._products(*args, directions)
            if products.shape[1] != plan.pattern.shape[0]:
                raise ValueError(
                    f"`sparsity` has {plan.pattern.shape[0]} rows, and {self._what} {products.shape[1]}: one for each"
                )
            if len(plan.directions):
                values = products[plan.direction, plan.element]
        if len(plan.alone):
            values[plan.of_alone] = self._of_alone(plan, args, x)
        if self._given is not None:
            self._check(plan.matrix(values), directions[-1], products[-1])
        return values

    def _of_alone(self, plan: _Plan, args: tuple[Any, ...], x: Any) -> Any:
        """Return the entries in rows that are computed one by one."""
        raise NotImplementedError

    def _check(self, matrix: csr_array, direction: Any, product: Any) -> None:
        """Raise ValueError if a pattern that was passed lacks an entry, which a product with the matrix reveals."""
        with np.errstate(all="ignore"):
            found = matrix @ direction
            allowed = np.finfo(product.dtype).eps ** 0.6 * (abs(matrix) @ abs(direction) + abs(product))
            wrong = ~(abs(found - product) <= allowed) & (np.isfinite(found) | np.isfinite(product))
        if wrong.any():
            raise ValueError(
                f"`sparsity` lacks an entry in row {int(np.argmax(wrong))} of {self} of "
                f"`{getattr(self.primal, '__name__', self.primal)}`: give all places where there may be one, "
                "or sparsity='detect'"
            )

    def _plan(self, args: tuple[Any, ...], x: Any) -> _Plan:
        """Return the plan for these arguments."""
        last = self._last
        same: Any = False
        if self._given is not None:
            found: tuple[Any, ...] = (x.dtype,)
            if self._given.shape[1] != x.size:
                raise ValueError(
                    f"`sparsity` has {self._given.shape[1]} columns, and the argument {x.size} elements: one for each"
                )
        else:
            if last is not None and last.given is not None and last.given == self._decisive(args):
                return last
            sets, unions, same = self._dependence(*args, (-1 - np.arange(x.size)).reshape(x.shape))
            found = x.dtype, x.size, np.ravel(sets), unions
        given = self._decisive(args) if same else None
        if last is not None and last.fits(found):
            plan = replace(last, given=given)
        else:
            pattern = self._given or runtime.rows_of(found[2], found[3], x.size)
            plan = replace(self._planned(pattern, x.dtype, found), given=given)
        self._last = plan
        return plan

    def _decisive(self, args: tuple[Any, ...]) -> tuple[Any, ...] | None:
        """Return everything that determines the pattern if numbers do not; None if that is unknown."""
        circumstances = self._dependence.circumstances()
        if circumstances is None:
            return None
        now, captured = circumstances
        found = [now]
        for value in (*args, *captured):
            if isinstance(value, np.ndarray):
                found.append((value.shape, value.dtype.str, value.flags.c_contiguous, value.flags.f_contiguous))
            elif isinstance(value, int | np.integer | np.bool_ | None):
                found.append((type(value), value))
            elif isinstance(value, float | np.floating):
                found.append(type(value))
            else:
                return None
        return tuple(found)

    def _planned(self, pattern: runtime.Pattern, dtype: Any, found: tuple[Any, ...]) -> _Plan:
        """Make a plan for a matrix with this pattern."""
        raise NotImplementedError

    def _planned_for(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[_Plan, tuple[Any, ...], Any]:
        """Return the plan, the arguments in the order of the parameters, and the one to differentiate by."""
        if any(each.kind is each.VAR_POSITIONAL for each in self._signature.parameters.values()):
            raise self._refused(f"{self} of a function of any number of arguments", "give each of them a name")
        check_fit(self.primal, args, kwargs)
        bound = self._signature.bind(*args, **kwargs)
        bound.apply_defaults()
        found, names = list(bound.arguments.values()), list(self._signature.parameters)
        if isinstance(self.wrt, str) and self.wrt not in names:
            raise self._refused(f"{self} with respect to `{self.wrt}`, which is not a parameter", "name a parameter")
        place = names.index(self.wrt) if isinstance(self.wrt, str) else int(self.wrt)
        if not -len(found) <= place < len(found):
            raise self._refused(f"{self} with respect to argument {place} of {len(found)}", "count them from 0")
        x = found[place]
        if not isinstance(x, np.ndarray) or x.dtype.kind != "f":
            what = f"an array of {x.dtype}" if isinstance(x, np.ndarray) else f"of type {type(x).__name__}"
            raise self._refused(f"{self} with respect to an argument that is {what}", "pass an array of floats")
        return self._plan(tuple(found), x), tuple(found), x

    @functools.cached_property
    def _signature(self) -> inspect.Signature:
        return inspect.signature(numba_adapter.py_func_of(self.primal))

    def _refused(self, what: str, hint: str) -> Exception:
        code = getattr(inspect.unwrap(numba_adapter.py_func_of(self.primal)), "__code__", None)
        return refuse(what, Loc(code.co_filename, code.co_firstlineno) if code else None, hint)

    @property
    def _what(self) -> str:
        return "the result" if self._order == 1 else "the gradient"


class SparseJacobian(_Sparse):
    """The Jacobian of a function of an array, as a sparse matrix.

    Called with the arguments of the function, it returns a `scipy.sparse.csr_array` of shape `(m, n)` with a row for
    each element of the result and a column for each element of the argument, both in the order of `ravel`. All entries
    that may be nonzero are stored, even those that are zero.

    Parameters
    ----------
    f : callable
        A function whose result is an array of floats.
    wrt : str or int
        The parameter, by name or number: an array of floats.
    sparsity : str or array of shape (m, n)
        "detect", to detect the pattern at each call; or a matrix, sparse or dense, whose nonzeros are the entries that
        may be nonzero.

    Raises
    ------
    ValueError
        At a call, if the pattern that was passed lacks an entry.

    Examples
    --------
    >>> J = SparseJacobian(lambda x: x[1:] * x[:-1])
    >>> J(np.array([1.0, 2.0, 3.0])).toarray()
    array([[2., 1., 0.],
           [0., 3., 2.]])
    """

    def __init__(self, f: Callable[..., Any], wrt: int | str = 0, sparsity: Any = "detect") -> None:
        super().__init__(f, wrt, sparsity)
        self._weighed: DerivativeFunction[..., Any] = DerivativeFunction(f, Weighed(wrt))

    def _planned(self, pattern: runtime.Pattern, dtype: Any, found: tuple[Any, ...]) -> _Plan:
        rows = pattern.rows
        dense = runtime.dense_rows(pattern, _PRICE, _GAIN)
        colours, count = runtime.colour_columns(pattern, dense)
        alone = np.flatnonzero(dense)
        directions = _directions(colours, count, dtype)
        return _Plan(found, None, pattern, directions, colours[pattern.columns], rows, alone, dense[rows])

    def _of_alone(self, plan: _Plan, args: tuple[Any, ...], x: Any) -> Any:
        weights = np.zeros((len(plan.alone), plan.pattern.shape[0]), x.dtype)
        weights[np.arange(len(plan.alone)), plan.alone] = 1.0
        found = self._weighed(*args, weights)
        columns = plan.pattern.columns[plan.of_alone]
        rows = np.searchsorted(plan.alone, plan.pattern.rows[plan.of_alone])
        return found[rows, columns]


class SparseHessian(_Sparse):
    """The Hessian of a function of an array, as a sparse matrix, symmetric to the last bit.

    Called with the arguments of the function, it returns a `scipy.sparse.csr_array` of shape `(n, n)` with a row and a
    column for each element of the argument, in the order of `ravel`. All entries that may be nonzero are stored, even
    those that are zero.

    Parameters
    ----------
    f : callable
        A function whose result is a real number.
    wrt : str or int
        The parameter, by name or number: an array of floats.
    sparsity : str or array of shape (n, n)
        "detect", to detect the pattern at each call; or a matrix, sparse or dense, in which an entry that may be
        nonzero, or its mirror image, is nonzero.

    Raises
    ------
    ValueError
        At a call, if the pattern that was passed lacks an entry.

    Examples
    --------
    >>> H = SparseHessian(lambda x: np.sum(x[1:] * x[:-1] ** 2))
    >>> H(np.array([1.0, 2.0, 3.0])).toarray()
    array([[4., 2., 0.],
           [2., 6., 4.],
           [0., 4., 0.]])
    """

    _order = 2

    def _planned(self, pattern: runtime.Pattern, dtype: Any, found: tuple[Any, ...]) -> _Plan:
        if pattern.shape[0] != pattern.shape[1]:
            raise ValueError(f"`sparsity` is of shape {pattern.shape}, and a Hessian is square")
        pattern = pattern.symmetric()
        colours, count, dense = runtime.colour_symmetric(pattern)
        rows, columns = pattern.rows, pattern.columns
        # One of an entry and its mirror image is read for both: that in a dense column, else that below the diagonal.
        mirrored = np.where(dense[rows] != dense[columns], dense[rows], rows < columns)
        read_row, read_column = np.where(mirrored, columns, rows), np.where(mirrored, rows, columns)
        none = np.zeros(0, np.int64), np.zeros(len(rows), np.bool_)
        return _Plan(found, None, pattern, _directions(colours, count, dtype), colours[read_column], read_row, *none)


def _given(sparsity: Any) -> runtime.Pattern | None:
    """Return the pattern that was passed; None if it is to be detected."""
    if isinstance(sparsity, str):
        if sparsity != "detect":
            raise ValueError(
                f"sparsity={sparsity!r}: it is 'detect', or a matrix with an entry wherever there may be one"
            )
        return None
    from scipy.sparse import coo_array, issparse

    if not issparse(sparsity):
        sparsity = np.asarray(sparsity)
    if sparsity.ndim != 2 or (not issparse(sparsity) and sparsity.dtype.kind not in "buif"):
        raise ValueError(f"`sparsity` is an array of {sparsity.dtype} with {sparsity.ndim} axes, and no matrix")
    entries = coo_array(sparsity)
    rows, columns = (np.asarray(each, np.int64) for each in entries.coords)
    return runtime.pattern_of(entries.shape, rows, columns)


def _directions(colours: runtime.Ints, count: int, dtype: Any) -> Any:
    """Return, for each color, the sum of the unit vectors of its columns."""
    found = np.zeros((count, len(colours)), dtype)
    coloured = np.flatnonzero(colours >= 0)
    found[colours[coloured], coloured] = 1.0
    return found


def _any_direction(x: Any) -> Any:
    """Return a direction that distinguishes the entries of any two columns."""
    return np.random.default_rng(x.size).uniform(0.5, 1.5, (1, x.size)).astype(x.dtype)
