"""docs/numpy.md: it is what the generator prints, and what it says of a function is so."""

from __future__ import annotations

import cmath
import math
from pathlib import Path

import numpy as np
import pytest

from zygote_py import DifferentiationError, gradient, value_and_gradient
from zygote_py.library.__main__ import text
from zygote_py.library.catalogue import Kind, status, status_of_member
from zygote_py.numba_adapter import array_members, supported_callables

pytestmark = pytest.mark.interpreted

PAGE = Path(__file__).parent.parent / "docs" / "numpy.md"


def test_the_page_is_up_to_date():
    assert PAGE.read_text("utf-8") == text(), "run python -m zygote_py.library > docs/numpy.md"


def test_every_callable_is_on_the_page():
    page = PAGE.read_text("utf-8")
    for module, callables in supported_callables().items():
        assert len(callables) > 15
        missing = [
            name for name in callables if f"`{name if module == 'builtins' else f'{module}.{name}'}`" not in page
        ]
        assert not missing
    assert not [name for name in array_members() if f"`.{name}`" not in page]


@pytest.mark.parametrize(
    "op", [np.sin, np.var, np.sort, np.zeros, np.dot, np.where, np.linalg.inv, cmath.exp, np.float32, sum]
)
def test_differentiable(op):
    assert status(op).kind is Kind.DIFFERENTIABLE


@pytest.mark.parametrize(
    "op", [np.argsort, np.floor, np.isnan, np.random.normal, np.eye, math.gcd, len, np.int64, np.less]
)
def test_without_derivative(op):
    assert status(op).kind is Kind.FLAT


@pytest.mark.parametrize("op", [np.nextafter, np.roots, np.frombuffer, filter])
def test_refused(op):
    assert status(op).kind is Kind.REFUSED


def test_members_of_arrays():
    assert status_of_member("T").kind is Kind.DIFFERENTIABLE
    assert status_of_member("cumsum").kind is Kind.DIFFERENTIABLE
    assert status_of_member("argmax").kind is Kind.FLAT
    assert status_of_member("view").kind is Kind.DIFFERENTIABLE
    assert status_of_member("tobytes").kind is Kind.REFUSED


FLAT_CALLS = {
    "np.argsort(x)[0]": np.argsort,
    "np.floor(x)[0]": np.floor,
    "np.searchsorted(x, 0.5)": np.searchsorted,
    "np.any(x > 0.4)": np.any,
    "np.nonzero(x)[0][1]": np.nonzero,
    "np.linalg.matrix_rank(np.outer(x, x))": np.linalg.matrix_rank,
    "np.count_nonzero(x)": np.count_nonzero,
    "np.eye(3)[1, 1]": np.eye,
    "np.hamming(3)[1]": np.hamming,
    "np.isclose(x, 0.3)[0]": np.isclose,
}


def function(call):
    namespace = {"np": np}
    exec(f"def f(x):\n    return x[0] * x[0] + {call}\n", namespace)
    return namespace["f"]


@pytest.mark.parametrize("call", FLAT_CALLS)
def test_no_gradient_flows_through_what_has_no_derivative(call):
    assert status(FLAT_CALLS[call]).kind is Kind.FLAT
    x = np.array([0.3, 0.5, 0.9])
    value, dx = value_and_gradient(function(call))(x)
    np.testing.assert_allclose(dx, [0.6, 0.0, 0.0])
    assert value == pytest.approx(function(call)(x))


@pytest.mark.parametrize(
    "call", ["np.roots(x)[0].real", "np.nextafter(x[0], 1.0)", "np.spacing(x[0])", "np.kaiser(3, x[0])[0]"]
)
def test_what_is_refused_is_refused_with_its_line(call):
    with pytest.raises(DifferentiationError) as caught:
        gradient(function(call))(np.array([0.3, 0.5, 0.9]))
    assert call.partition("(")[0] in str(caught.value)
