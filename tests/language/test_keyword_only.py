"""Parameters that are passed by keyword only, of the differentiated function and of those that it calls."""

import numba
import numpy as np
import pytest

import zygote_py as zg
from tests.plain import plain
from zygote_py import DifferentiationError, gradient


def scaled(x, *, p=2.0):
    return x * x * p


def required(x, y, /, *, power, shift=0.0):
    return x**power * y + shift * x


def callee(x, *, p=2.0, q):
    return x * p * q


def calls(x):
    return callee(x, q=x) + callee(x, q=2.0, p=x)


def recursive(x, n, *, last=1.0):
    return x * last if n == 0 else recursive(x * 1.1, n - 1, last=x)


def test_gradients():
    d = gradient(scaled)
    assert d(1.5) == (6.0, 2.25)
    assert d(1.5, p=3.0) == (9.0, 2.25)
    assert gradient(scaled, wrt="p")(1.5, p=3.0) == 2.25
    assert plain(d.source(1.5, 3.0))(1.5, 3.0) == (9.0, 2.25)
    source = gradient(required).source(1.5, 2.0, 3, 0.5)
    assert plain(source)(1.5, 2.0, 3, 0.5) == (14.0, 3.375, None, 1.5)
    assert plain(gradient(calls).source(1.5))(1.5) == 4 * 1.5 + 4 * 1.5
    slope = plain(gradient(recursive, wrt="x").source(1.5, 2, 1.0))(1.5, 2)
    assert slope == pytest.approx(2 * 1.1**3 * 1.5)


def test_in_compiled_code():
    d = gradient(scaled)

    @numba.njit
    def caller(x):
        return d(x, p=3.0)[0] + d(x)[0]

    assert caller(1.5) == 15.0


def test_other_derivatives():
    assert zg.hessian(scaled)(1.5) == 4.0
    assert zg.hessian(scaled)(1.5, p=3.0) == 6.0
    assert zg.pullback(scaled, 1.5)[1](1.0) == (6.0, 2.25)
    assert zg.pullback(scaled, 1.5, p=3.0)[1](2.0) == (18.0, 4.5)
    assert zg.jvp(scaled, (1.5, 3.0), (1.0, 0.0)) == (6.75, 9.0)
    assert zg.hvp(scaled)(1.5, v=2.0, p=3.0) == 12.0
    assert gradient(lambda x: gradient(scaled, wrt="x")(x, p=x))(1.5) == 4 * 1.5


def behind_a_default(x, p=2.0, *, q):
    return x * p * q


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: gradient(scaled)(1.5, 3.0), "takes 1 positional argument but 2 were given"),
        (lambda: zg.pullback(scaled, 1.5, 3.0), "takes 1 positional argument but 2 were given"),
        (lambda: gradient(required)(1.5, 2.0), "missing 1 required .*argument: 'power'"),
    ],
)
def test_arguments_that_do_not_fit(call, says):
    with pytest.raises(TypeError, match=says):
        call()


def test_refused():
    with pytest.raises(DifferentiationError, match="`q` has no default and follows `p`, which has one"):
        gradient(behind_a_default)(1.5, q=2.0)


def sums(x, *, w=1.0):
    return np.sum(x * x) * w


def test_arrays():
    x = np.array([1.0, 2.0])
    dx, dw = plain(gradient(sums).source(x, 2.0))(x, 2.0)
    assert (dx.tolist(), dw) == ([4.0, 8.0], 5.0)
