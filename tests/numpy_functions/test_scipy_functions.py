"""Functions of `scipy.special`, reached by pointers of `cython_special` or by their names."""

import ctypes
import math
import subprocess
import sys

import numba
import numpy as np
import pytest
import scipy.special
import scipy.special.cython_special
from numba import types
from numba.extending import get_cython_function_address

import zygote_py as zg
from tests.checking.derivatives import check_derivatives
from tests.plain import plain
from zygote_py import DifferentiationError, gradient

pytestmark = pytest.mark.interpreted

double, single, long, whole = ctypes.c_double, ctypes.c_float, ctypes.c_long, ctypes.c_int


def pointer(symbol, *kinds, result=double):
    address = get_cython_function_address("scipy.special.cython_special", symbol)
    return ctypes.CFUNCTYPE(result, *kinds)(address)


gammaln = pointer("gammaln", double)
erf = pointer("__pyx_fuse_1erf", double)
log_ndtr = pointer("__pyx_fuse_1log_ndtr", double, whole)  # the last is passed to all of them, and not looked at
jv = pointer("__pyx_fuse_1jv", double, double)
yn = pointer("__pyx_fuse_1yn", long, double)
i0e = pointer("i0e", double)
gammainc = pointer("gammainc", double, double)
betaln = pointer("betaln", double, double)
xlogy = pointer("__pyx_fuse_1xlogy", double, double)


@numba.njit
def log_likelihood(k, rate):
    return xlogy(k, rate) - rate - gammaln(k + 1.0)


def many(x, ks, a):
    s = log_ndtr(x, 0) + i0e(x) * erf(x) + betaln(x, a)
    for i in range(len(ks)):
        s += log_likelihood(ks[i], x * x) * jv(1.5, x) + yn(i, x) + gammainc(2.5, ks[i] * x)
    return s


KS = np.array([1.0, 3.0, 2.5])


@pytest.mark.compiled
def test_pointers():
    check_derivatives(many, 1.3, KS, 0.7)


def test_second_derivatives():
    slopes = gradient(many, wrt="x")
    step = 1e-5
    expected = (slopes(1.3 + step, KS, 0.7) - slopes(1.3 - step, KS, 0.7)) / (2 * step)
    assert zg.hessian(many, wrt="x")(1.3, KS, 0.7) == pytest.approx(expected, rel=1e-7)
    value, tangent = zg.jvp(lambda x: many(x, KS, 0.7), (1.3,), (1.0,))
    assert value == many(1.3, KS, 0.7)
    assert tangent == pytest.approx(slopes(1.3, KS, 0.7), rel=1e-13)


def test_the_emitted_source_needs_only_scipy_besides():
    text = gradient(many, wrt="x").source(1.3, KS, 0.7)
    assert 'get_cython_function_address("scipy.special.cython_special", "gammaln")' in text
    call = "many_gradient(1.3, np.array([1.0, 3.0, 2.5]), 0.7)"
    script = f"{text}\nimport sys\nprint(float({call}), 'zygote_py' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    number, is_there = done.stdout.split()
    assert is_there == "False"
    assert float(number) == pytest.approx(gradient(many, wrt="x")(1.3, KS, 0.7), rel=1e-14)


def test_names_of_parameters_are_no_trouble():
    def f(ctypes, gammaln_, get_cython_function_address):
        return gammaln(ctypes) * jv(2.0, gammaln_) + get_cython_function_address

    found = plain(gradient(f).source(1.5, 0.7, 1.0))(1.5, 0.7, 1.0)
    log_gamma, bessel = scipy.special.gammaln(1.5), scipy.special.jv(2.0, 0.7)
    expected = (scipy.special.digamma(1.5) * bessel, log_gamma * scipy.special.jvp(2.0, 0.7), 1.0)
    assert found == pytest.approx(expected, rel=1e-13)


def test_single_precision():
    symbol = next(symbol for symbol in ("__pyx_fuse_0expit", "__pyx_fuse_1expit") if "float" in signature(symbol))
    expit = pointer(symbol, single, result=single)

    def f(x):
        return expit(x) * np.float32(2.0)

    x = np.float32(0.3)
    derivative = gradient(f)
    y = 1.0 / (1.0 + math.exp(-0.3))
    assert float(derivative(x)) == pytest.approx(2.0 * y * (1.0 - y), rel=1e-6)
    assert "np.float32" in derivative.source(x)


def signature(symbol):
    capsule = scipy.special.cython_special.__pyx_capi__[symbol]
    name = ctypes.pythonapi.PyCapsule_GetName
    name.restype, name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    return name(capsule).decode()


def of_order(v, x):
    return jv(v, x)


def of_shape(a, x):
    return gammainc(a, x)


@pytest.mark.parametrize(("function", "name"), [(of_order, "v"), (of_shape, "a")])
def test_orders_and_shapes(function, name):
    with pytest.raises(
        DifferentiationError, match=f"is not differentiated in its argument `{name}`.*\n.*\n.*\n.*wrt"
    ) as e:
        gradient(function).source(2.0, 1.3)
    assert e.value.line == function.__code__.co_firstlineno + 1
    slope = plain(gradient(function, wrt="x").source(2.0, 1.3))(2.0, 1.3)
    step = 1e-6
    assert slope == pytest.approx((function(2.0, 1.3 + step) - function(2.0, 1.3 - step)) / (2 * step), rel=1e-8)
    assert gradient(lambda x: function(zg.stop_gradient(x), x)).source(1.3)


def cube(x):
    return x * x * x


UNKNOWN = ctypes.CFUNCTYPE(double, double)(cube)  # a pointer to something else
WRONG = pointer("__pyx_fuse_1jv", long, double)  # the order is not an integer


@pytest.mark.parametrize("function", [lambda x: UNKNOWN(x), lambda x: WRONG(2, x)])
def test_other_pointers_are_refused(function):
    with pytest.raises((DifferentiationError, TypeError)):
        gradient(function)(1.3)


OVERLOADS = """
import ctypes
import numpy as np
import scipy.special
import scipy.special as sp
from numba import njit, types
from numba.extending import get_cython_function_address, overload
from tests.checking.derivatives import check_derivatives
from zygote_py import DifferentiationError, gradient

def pointer(symbol, *kinds):
    address = get_cython_function_address("scipy.special.cython_special", symbol)
    return ctypes.CFUNCTYPE(ctypes.c_double, *kinds)(address)

log_gamma = pointer("gammaln", ctypes.c_double)
bessel = pointer("__pyx_fuse_1jv", ctypes.c_double, ctypes.c_double)
digamma = pointer("__pyx_fuse_1psi", ctypes.c_double)
zetac = pointer("zetac", ctypes.c_double)

@overload(scipy.special.gammaln)
def of_gammaln(x):
    return lambda x: log_gamma(x)

@overload(scipy.special.jv)
def of_jv(v, x):
    return lambda v, x: bessel(v, x)

@overload(scipy.special.psi)
def of_psi(x):
    return lambda x: digamma(x)

@overload(scipy.special.zetac)
def of_zetac(x):
    return lambda x: zetac(x)

@njit
def inner(x):
    return scipy.special.gammaln(x) + sp.digamma(2 * x)

def f(x, n):
    return inner(x) * sp.jn(2, x) + sp.gammaln(n) + sp.jv(n, x)

check_derivatives(f, 1.3, 3, routes=("source",))

try:
    gradient(lambda x: sp.zetac(x))(1.3)
except DifferentiationError as error:
    assert "zetac" in str(error)
else:
    raise AssertionError("zetac has no rule")
print("done")
"""


@pytest.mark.compiled
def test_by_name_where_numba_knows_it():
    """In a process of its own, as what Numba is told cannot be taken back."""
    done = subprocess.run([sys.executable, "-c", OVERLOADS], capture_output=True, text=True, check=False, timeout=300)
    assert done.stdout == "done\n", done.stderr


def known_by_address(name, address, signature):
    """A function as Numba knows it by its address, without a source."""
    members = {"__wrapper_address__": lambda self: address, "signature": lambda self: signature}
    return type(name, (types.WrapperAddressProtocol,), members)()


def address_of(symbol):
    return get_cython_function_address("scipy.special.cython_special", symbol)


by_address = known_by_address("gammaln", address_of("gammaln"), types.float64(types.float64))
squares = numba.cfunc("f8(f8)")(lambda x: x * x)
other_by_address = known_by_address("squares", squares.address, types.float64(types.float64))


@pytest.mark.compiled
def test_functions_known_by_their_address():
    check_derivatives(lambda x: by_address(x) * x, 1.3, reference="numba")
    assert gradient(lambda x, n: x * other_by_address(n * 0.5))(1.3, 3) == (2.25, None)
    with pytest.raises(DifferentiationError, match="C function"):
        gradient(lambda x: other_by_address(x))(0.5)
    with pytest.raises(DifferentiationError) as caught:
        zg.adjoint(other_by_address)
    assert "write a function that does so" in caught.value.hint

    def calls_it(x):
        return other_by_address(x)

    @zg.adjoint(calls_it)
    def rule(x):
        return other_by_address(x), lambda dy: (2.0 * x * dy,)

    assert gradient(lambda x: calls_it(x) * 3.0)(0.5) == 3.0
