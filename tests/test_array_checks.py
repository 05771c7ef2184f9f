"""The checker of arrays finds what is wrong: a wrong gradient, a wrong seed, changed arguments, a kink."""

from __future__ import annotations

import numpy as np
import pytest

import zygote_py
from tests.array_checks import check_arrays
from tests.array_trees import copied, real_parts

rng = np.random.default_rng(3)


def weighted(x, a):
    s = 0.0
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            s += a[i, j] ** 2 * x * (i + 1)
    return s


A = rng.normal(size=(2, 3))


def test_what_is_right_passes():
    check_arrays(weighted, 0.7, A, empty=[(0.7, np.zeros((0, 3)))])


def wrong(change):
    """A library whose gradient is changed by a function of the value, the gradients and the arguments."""
    real = zygote_py.value_and_gradient

    class Wrong:
        def __init__(self, function, wrt):
            self.right = real(function, wrt=wrt)

        def __call__(self, *args):
            return change(*self.right(*args), args)

        def source(self, *args):
            return self.right.source(*args)

    return Wrong


def scaled(value, gradients, args):
    return value, (gradients[0], 1.0001 * gradients[1])


def without_seed(value, gradients, args):
    return value, tuple(gradient / args[-1] for gradient in gradients)


def another_value(value, gradients, args):
    return np.nextafter(value, 2 * value), gradients


def in_doubles(value, gradients, args):
    return value, (gradients[0], gradients[1].astype(np.float64))


def writes(value, gradients, args):
    args[1][0, 0] += 1e-9
    return value, gradients


def shares(value, gradients, args):
    args[1][...] = gradients[1]
    return value, (gradients[0], args[1])


def value_off(value, gradients, args):
    return value * (1 + 1e-11), gradients


@pytest.mark.parametrize("change", [scaled, without_seed, value_off, in_doubles, writes, shares])
def test_what_is_wrong_is_found(monkeypatch, change):
    monkeypatch.setattr(zygote_py, "value_and_gradient", wrong(change))
    with pytest.raises(AssertionError):
        check_arrays(weighted, 0.7, A)


def test_a_value_that_is_off_by_a_bit_is_found_by_a_thorough_check(monkeypatch):
    monkeypatch.setattr(zygote_py, "value_and_gradient", wrong(another_value))
    with pytest.raises(AssertionError, match="the value"):
        check_arrays(weighted, 0.7, A, thorough=True)


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
    with pytest.raises(AssertionError, match="pullback: the value" if layouts == "C" else "layout F, seed 0, pullback"):
        check_arrays(weighted, 0.7, A, layouts=layouts, float32=False, ways=("pullback",))


def test_a_kink_is_an_error():
    def kink(a):
        return abs(a[0]) + a[1]

    with pytest.raises(AssertionError, match="a kink"):
        check_arrays(kink, np.array([0.0, 1.0]))


def test_trees():
    tree = (1.0, np.array([1 + 2j, 3 - 1j]), (np.arange(3), None, np.float32(0.5)))
    np.testing.assert_array_equal(real_parts(tree), [1.0, 1.0, 2.0, 3.0, -1.0, 0.5])
    strided = np.arange(12.0).reshape(3, 4)[::-1, ::2]
    again = copied((strided, strided))
    assert again[0] is again[1]
    assert not again[0].flags.c_contiguous
    assert not np.shares_memory(again[0], strided)
    np.testing.assert_array_equal(again[0], strided)
