"""`check_derivatives` finds what is wrong: a wrong gradient, value, form or seed, changed arguments, a kink."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import zygote_py
from tests.checking.derivatives import check_derivatives
from tests.checking.slopes import differences
from tests.checking.trees import copied, real_parts, same, same_form
from tests.modes import one_in

rng = np.random.default_rng(3)
A = rng.normal(size=(2, 3))
ARRAYS = {"routes": ("call", "pullback"), "layouts": "CFA", "float32": True, "reference": "numba"}


def weighted(x, a):
    s = 0.0
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            s += a[i, j] ** 2 * x * (i + 1)
    return s


def rows(x, a):
    return x * a[0], a[1] * a[1, 0]


def test_what_is_right_passes():
    check_derivatives(weighted, 0.7, A, empty=[(0.7, np.zeros((0, 3)))], **ARRAYS)


@pytest.mark.interpreted
@pytest.mark.parametrize("method", ["central", "precise", "complex", "directional"])
@pytest.mark.parametrize("route", ["call", "source", "njit"])
def test_what_is_right_passes_by_every_route(method, route):
    check_derivatives(weighted, 0.7, A, at=[(0.3, A + 1.0)], method=method, routes=(route,))


@pytest.mark.interpreted
@pytest.mark.parametrize("method", ["central", "directional"])
def test_what_is_right_passes_with_seeds(method):
    check_derivatives(weighted, 0.7, A, at=[(0.3, A + 1.0)], method=method, routes=("pullback",))
    check_derivatives(rows, 0.7, A, method=method, **ARRAYS)


def wrong(change):
    """A library whose gradient is changed by a function of the value, the gradients and the arguments."""
    real = zygote_py.value_and_gradient

    class Wrong:
        _hidden = ()

        def __init__(self, function, **options):
            self.right = real(function, **options)
            self.calls = 0

        def __call__(self, *args):
            self.calls += 1
            found = self.right(*args)
            return change(*found, args) if change is not stale or self.calls % 2 == 0 else found

        def source(self, *args):
            return self.right.source(*args)

    return Wrong


def scaled(value, gradients, args):
    return value, (gradients[0], 1.0001 * gradients[1])


def without_seed(value, gradients, args):
    return value, tuple(gradient / args[-1] for gradient in gradients)


def another_value(value, gradients, args):
    return np.nextafter(value, 2 * value), gradients


def in_another_precision(value, gradients, args):
    to = np.float32 if gradients[1].dtype == np.float64 else np.float64
    return value, (gradients[0], gradients[1].astype(to))


def in_doubles(value, gradients, args):
    return value, (gradients[0], gradients[1].astype(np.float64))


def writes(value, gradients, args):
    args[1][0, 0] += 1e-9
    return value, gradients


def shares(value, gradients, args):
    args[1][...] = gradients[1]
    return value, (gradients[0], args[1])


def is_a_view(value, gradients, args):
    at = args[1].copy()
    args[1][...] = gradients[1]
    shared = args[1].view()
    args[1][...] = at
    return value, (gradients[0], shared)


def read_only(value, gradients, args):
    gradients[1].flags.writeable = False
    return value, gradients


def value_off(value, gradients, args):
    return value * (1 + 1e-11), gradients


def nan(value, gradients, args):
    return value, (gradients[0] * np.nan, gradients[1])


def infinite(value, gradients, args):
    return value, (gradients[0], gradients[1] + np.inf)


def none(value, gradients, args):
    return value, (None, gradients[1])


def a_list(value, gradients, args):
    return value, ([gradients[0]], gradients[1])


def stale(value, gradients, args):
    return np.nextafter(value, 2 * value), gradients


EVERYWHERE = [scaled, value_off, writes, shares, is_a_view, read_only, nan, infinite, none, a_list]


@pytest.mark.parametrize("change", [scaled, without_seed, value_off, in_doubles, writes, shares])
def test_what_is_wrong_is_found(monkeypatch, change):
    monkeypatch.setattr(zygote_py, "value_and_gradient", wrong(change))
    with pytest.raises(AssertionError):
        check_derivatives(weighted, 0.7, A, **ARRAYS)


EXPECTED = (weighted(1.0, A), 2 * 0.7 * A * np.array([[1.0], [2.0]]))


@pytest.mark.interpreted
@pytest.mark.parametrize("change", one_in(2, [*EVERYWHERE, in_another_precision, stale]))
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"expected": EXPECTED},
        {"method": "precise"},
        {"method": "complex"},
        {"method": "directional"},
        {"routes": ("njit", "call")},
    ],
    ids=str,
)
def test_what_is_wrong_is_found_by_every_method(monkeypatch, change, options):
    if options.get("method") == "complex" and change is value_off:
        options = {**options, "value": "exact"}
    check_derivatives(weighted, 0.7, A, **options)
    monkeypatch.setattr(zygote_py, "value_and_gradient", wrong(change))
    with pytest.raises(AssertionError, match="routes="):
        check_derivatives(weighted, 0.7, A, **options)


@pytest.mark.interpreted
def test_a_value_that_is_off_by_a_bit_is_found_where_it_is_to_be_exact(monkeypatch):
    monkeypatch.setattr(zygote_py, "value_and_gradient", wrong(another_value))
    check_derivatives(weighted, 0.7, A)
    with pytest.raises(AssertionError, match="the value"):
        check_derivatives(weighted, 0.7, A, value="exact")


def test_a_value_that_is_off_by_a_bit_is_found_by_a_thorough_check(monkeypatch):
    monkeypatch.setattr(zygote_py, "value_and_gradient", wrong(another_value))
    with pytest.raises(AssertionError, match="the value"):
        check_derivatives(weighted, 0.7, A, thorough=True, **ARRAYS)


@pytest.mark.interpreted
def test_what_is_wrong_at_further_arguments_is_found(monkeypatch):
    def beyond(value, gradients, args):
        return value, (gradients[0] * (1.001 if args[0] > 1.0 else 1.0), gradients[1])

    monkeypatch.setattr(zygote_py, "value_and_gradient", wrong(beyond))
    check_derivatives(weighted, 0.7, A)
    with pytest.raises(AssertionError, match=r"at \(1.1"):
        check_derivatives(weighted, 0.7, A, at=[(1.1, A)])


@pytest.mark.parametrize("layouts", ["C", "CF"])
def test_a_wrong_pullback_is_found(monkeypatch, layouts):
    real = zygote_py.pullback

    def wrong_pullback(function, *args):
        value, back = real(function, *args)
        off = layouts == "C" or args[1].flags.f_contiguous
        return (np.nextafter(value, 0.0) if layouts == "C" else value), lambda seed: back(
            seed * 1.0001 if off else seed
        )

    monkeypatch.setattr(zygote_py, "pullback", wrong_pullback)
    says = '(?s)routes=."pullback",., layout C, seed 0, .*: the value' if layouts == "C" else "layout F, seed 0"
    with pytest.raises(AssertionError, match=says):
        check_derivatives(weighted, 0.7, A, layouts=layouts, routes=("pullback",), reference="numba")


@pytest.mark.interpreted
def test_another_function_is_the_reference():
    check_derivatives(lambda x: x * x, 0.7, reference=lambda x: x**2)
    with pytest.raises(AssertionError, match="is off by"):
        check_derivatives(lambda x: 0.49 + 1.4 * (x - 0.7), 0.8, reference=lambda x: 0.63 + (x - 0.8), value="close")
    with pytest.raises(AssertionError, match="the value"):
        check_derivatives(lambda x: x * x, 0.7, reference=lambda x: x**2 + 1.0)
    with pytest.raises(AssertionError, match="are not left"):
        check_derivatives(lambda a: np.sum(a * a), A, reference=_writing)


def _writing(a):
    total = np.sum(a * a)
    a[0, 0] = 0.0
    return total


@pytest.mark.interpreted
@pytest.mark.parametrize("method", ["central", "precise", "directional"])
def test_a_kink_is_an_error(method):
    def kink(a):
        return abs(a[0]) + a[1]

    with pytest.raises(AssertionError, match="in doubt"):
        check_derivatives(kink, np.array([0.0, 1.0]), method=method)


@pytest.mark.interpreted
def test_a_function_that_is_not_smooth_enough_is_an_error():
    with pytest.raises(AssertionError, match="two steps of the differences disagree"):
        check_derivatives(lambda x: np.sin(300.0 * x), 0.7)


@pytest.mark.interpreted
def test_second_derivatives():
    def f(x):
        return np.sum(x * x * x)

    v = np.array([0.5, -1.0])
    check_derivatives(f, np.array([1.0, 2.0]), direction=v)
    with pytest.raises(AssertionError):
        check_derivatives(f, np.array([1.0, 2.0]), direction=v, reference=lambda x: np.sum(x * x))


@dataclasses.dataclass(frozen=True)
class Pair:
    a: np.ndarray
    name: str
    rest: tuple[float, int]


def test_trees():
    tree = (1.0, np.array([1 + 2j, 3 - 1j]), (np.arange(3), None, np.float32(0.5)))
    np.testing.assert_array_equal(real_parts(tree), [1.0, 1.0, 2.0, 3.0, -1.0, 0.5])
    strided = np.arange(12.0).reshape(3, 4)[::-1, ::2]
    again = copied((strided, strided))
    assert again[0] is again[1]
    assert not again[0].flags.c_contiguous
    assert not np.shares_memory(again[0], strided)
    np.testing.assert_array_equal(again[0], strided)


def test_dataclasses():
    pair = Pair(np.array([1.0, 2.0]), "a", (3.0, 4))
    np.testing.assert_array_equal(real_parts(pair), [1.0, 2.0, 3.0])
    again = copied(pair)
    same(again, pair, "a copy")
    assert not np.shares_memory(again.a, pair.a)
    same_form(pair, Pair(np.zeros(2), None, (0.0, None)), "right")
    for wrong_form in (
        (np.zeros(2), None, (0.0, None)),
        Pair(np.zeros(3), None, (0.0, None)),
        Pair(np.zeros(2), "a", (0.0, None)),
        Pair(np.zeros(2), None, [0.0, None]),
        Pair(np.zeros(2), None, (0.0, 1)),
        Pair(pair.a, None, (0.0, None)),
        None,
    ):
        with pytest.raises(AssertionError):
            same_form(pair, wrong_form, "wrong")


def test_a_jacobian_by_differences():
    found = differences(lambda x, n: x**n, np.array([1.0, 2.0]), 3)
    np.testing.assert_allclose(found, [[3.0, 0.0], [0.0, 12.0]], rtol=1e-9, atol=1e-9)
