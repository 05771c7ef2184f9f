"""`gradient(..., mode=...)`: what each mode computes, what "auto" chooses, and what forward mode refuses."""

from __future__ import annotations

import math

import numba
import numpy as np
import pytest

from zygote_py import DifferentiationError, gradient, hessian, value_and_gradient


def power(x, n):
    r = 1.0
    for _ in range(n):
        r *= x
    return r


def predator(a, b, c, d, n):
    x, y, h = 1.0, 0.5, 0.01
    for _ in range(n):
        kx, ky = x * (a - b * y), y * (c * x - d)
        xm, ym = x + 0.5 * h * kx, y + 0.5 * h * ky
        x += h * xm * (a - b * ym)
        y += h * ym * (c * xm - d)
    return x + math.sin(y)


def until(x, y):
    s, k = x, 0
    while s < 50.0 and k < 30:
        s = s * abs(y) + max(x, y) ** 1.5
        k += 1
    return s / (1.0 + k)


def smoothed(x, n):
    state = np.zeros(n)
    for _ in range(5):
        for i in range(n):
            state[i] = math.tanh(state[i - 1] * x + i)
    return state.sum()


def kinks(x, y):
    total = 0.0
    for i in range(3):
        total = total * x + abs(x * y) + max(x, y) + math.sqrt(x * x) + (y if x > y else 2.0 * y) + x**i
    return total


def thrice(x, n):
    for _ in range(3):
        x = math.sin(x) * x + n
    return x


def thrice_of_two(x, y):
    for _ in range(3):
        x = math.sin(x) * y
    return x


@pytest.mark.parametrize(
    ("f", "args"),
    [
        (power, (1.7, 6)),
        (power, (np.float32(1.7), 6)),
        (power, (2.0, 0)),
        (predator, (1.1, 0.4, 0.3, 0.6, 40)),
        (until, (0.3, 1.2)),
        (until, (1.5, -1.2)),
        (smoothed, (0.7, 4)),
        (kinks, (0.5, 0.5)),
        (kinks, (-0.3, 0.8)),
        (thrice, (0.4, 1)),
        (thrice_of_two, (0.4, 1.3)),
    ],
)
def test_the_modes_agree(f, args):
    value, expected = value_and_gradient(f, mode="reverse")(*args)
    for mode in ("forward", "auto"):
        again, found = value_and_gradient(f, mode=mode)(*args)
        assert again == value
        for one, other in zip(found, expected, strict=True):
            assert (one is None) is (other is None)
            assert type(one) is type(other)
            tolerance = 1e-6 if isinstance(args[0], np.float32) else 1e-12
            assert one is None or math.isclose(one, other, rel_tol=tolerance, abs_tol=tolerance)


def test_the_gradients_are_right():
    assert gradient(power, mode="forward", wrt="x")(1.5, 4) == 4 * 1.5**3
    h = 1e-6
    for number, found in enumerate(gradient(predator, wrt=(0, 1, 2, 3), mode="auto")(1.1, 0.4, 0.3, 0.6, 40)):
        shifted = [
            [value + sign * h * (place == number) for place, value in enumerate((1.1, 0.4, 0.3, 0.6))]
            for sign in (1, -1)
        ]
        above, below = (predator(*each, 40) for each in shifted)
        assert math.isclose(found, (above - below) / (2 * h), rel_tol=1e-8)


def keeps(f, *args):
    return "_record" in gradient(f).source(*args) or "push" in gradient(f).source(*args)


def many(a, b, c, d, e, n):
    x = 1.0
    for _ in range(n):
        x = math.sin(x * a + b) * c + d * x * e
    return x


def in_two_precisions(a, b, c, d, e, n):
    x = 1.0
    for _ in range(n):
        x = math.sin(np.float32(x * a + b)) * c + d * x * e
    return x


def of_numbers(count):
    """A function of so many numbers."""
    names = [f"p{k}" for k in range(count)]
    total = " + ".join(f"{k + 1} * {name}" for k, name in enumerate(names))
    scope = {"math": math}
    exec(
        f"def f({', '.join(names)}, n):\n"
        f"    s = 0.0\n    for _ in range(n):\n        s = math.sin(s + {total})\n    return s",
        scope,
    )
    return scope["f"]


def sum_of_squares(x, n):
    total = 0.0
    for i in range(n):
        total += math.sin(x * i) ** 2
    return total


def writes(x, a):
    for i in range(1, a.size):
        a[i] = a[i - 1] * x
    return a[-1]


def rooted(x, n):
    s = 0.5
    for _ in range(n):
        s = s * s + math.sqrt(abs(x)) * s
    return s


def test_infinite_derivatives_are_not_hidden():
    assert math.isnan(gradient(rooted, wrt="x")(0.0, 3))
    assert gradient(rooted, wrt="x", mode="forward")(0.0, 3) == 0.0  # as that of `jvp`


def quotients(x, n):
    s = 0.5
    for k in range(n):
        s = s / (1.0 + x * x) + math.log(x + s) + k / x
    return s


def long_loop(lines):
    """A loop of an unknown number of rounds, long enough for the calls of this function to stay calls."""
    body = ["        s = 0.9 * s * math.tanh(y) / (1.0 + s * s) - 0.1 * math.sin(s) * y"] * lines
    scope = {"math": math}
    exec("\n".join(["def settled(x, y):", "    s = x", "    while abs(s) > 0.1:", *body, "    return s * x"]), scope)
    return scope["settled"]


settled = numba.njit(long_loop(30))


def calls_often(x, y):
    return settled(x, y) * settled(y, x) + settled(x * y, x) - settled(y, y) * settled(x + y, 0.7)


@numba.njit
def by_itself(x, n):
    return 1.0 if n == 0 else x * by_itself(x, n - 1)


def test_derivatives_that_are_infinite_only_where_the_value_is():
    expected = gradient(quotients, wrt="x", mode="reverse")(1.5, 4)
    assert not keeps(quotients, 1.5, 4)
    assert math.isclose(gradient(quotients, wrt="x")(1.5, 4), expected, rel_tol=1e-12)
    assert keeps(rooted, 1.5, 4)  # infinite at 0, where the function is 0


@pytest.mark.compiled
def test_functions_that_are_called():
    assert "settled_pushforward" in gradient(calls_often).source(0.9, 1.2)
    h = 1e-6
    found = gradient(calls_often, wrt=(0, 1))(0.9, 1.2)
    for number, step in enumerate(np.eye(2) * h):
        above, below = calls_often(*(np.array([0.9, 1.2]) + step)), calls_often(*(np.array([0.9, 1.2]) - step))
        assert math.isclose(found[number], (above - below) / (2 * h), rel_tol=1e-8)
    assert "by_itself_reverse" in gradient(by_itself, wrt="x").source(1.5, 3)  # which limits the depth of a recursion
    assert gradient(by_itself, wrt="x")(1.5, 3) == 3 * 1.5**2


def test_the_choice():
    assert not keeps(power, 1.5, 3)
    assert not keeps(predator, 1.0, 1.0, 1.0, 1.0, 3)
    assert not keeps(many, 1.0, 1.0, 1.0, 1.0, 1.0, 3)
    assert keeps(in_two_precisions, 1.0, 1.0, 1.0, 1.0, 1.0, 3)  # their tangents are not one value
    assert not keeps(of_numbers(8), *[0.1] * 8, 3)
    assert keeps(of_numbers(9), *[0.1] * 9, 3)  # of more numbers reverse mode is taken
    assert gradient(sum_of_squares).source(1.0, 3) == gradient(sum_of_squares, mode="reverse").source(1.0, 3)
    assert not keeps(thrice, 0.5, 1)  # by one number, forward mode does no more, even where the rounds are known
    assert keeps(thrice_of_two, 0.5, 0.5)
    array = np.ones(4)
    assert gradient(writes, wrt="x")(2.0, array) == 3 * 2.0**2
    np.testing.assert_array_equal(array, [1.0, 2.0, 4.0, 8.0])  # as the function leaves it


@pytest.mark.parametrize("count", [2, 8, 15, 16, 40])
def test_many_numbers(count):
    f, args = of_numbers(count), (*np.linspace(0.01, 0.02, count), 3)
    wrt = tuple(range(count))
    value, found = value_and_gradient(f, wrt=wrt, mode="forward")(*args)
    assert value == f(*args)
    step = 1e-6
    sums = [f(args[0] + h, *args[1:]) for h in (step, -step)]
    np.testing.assert_allclose(found, (sums[0] - sums[1]) / (2 * step) * np.arange(1, count + 1), rtol=1e-6)


def test_it_can_be_differentiated_again_and_called_in_compiled_code():
    slope = gradient(power, wrt="x", mode="forward")
    assert math.isclose(gradient(slope)(1.5, 4)[0], 12 * 1.5**2)
    assert math.isclose(hessian(power)(1.5, 4), 12 * 1.5**2)

    @numba.njit
    def calls(x):
        return slope(x, 4) + gradient(power, wrt=("x",), mode="forward")(x, 3)[0]

    assert math.isclose(calls(1.5), 4 * 1.5**3 + 3 * 1.5**2)
    assert math.isclose(gradient(calls)(1.5), 12 * 1.5**2 + 6 * 1.5)


def negative(x, n):
    for _ in range(n):
        if x < 0.0:
            raise ValueError("negative")
        x = x * x - 2.0
    return x


def test_exceptions_are_those_of_the_function():
    with pytest.raises(ValueError, match="negative"):
        gradient(negative)(1.0, 3)
    assert gradient(negative, wrt="x")(3.0, 1) == 6.0


def pair(x):
    return x * x, x


@pytest.mark.parametrize(
    ("f", "options", "args", "message"),
    [
        (lambda x: x.sum(), {}, (np.ones(2),), "of arrays, or structures"),
        (lambda p: p[0] * p[1], {}, ((1.0, 2.0),), "of arrays, or structures"),
        (pair, {"has_aux": True}, (1.0,), "has_aux=True"),
        (writes, {"wrt": "x"}, (1.0, np.ones(2)), "may write to its arguments"),
    ],
)
def test_refused(f, options, args, message):
    with pytest.raises(DifferentiationError, match=message) as caught:
        gradient(f, mode="forward", **options)(*args)
    assert caught.value.line is not None


def test_unknown_modes():
    with pytest.raises(DifferentiationError, match="mode='backward'"):
        gradient(power, mode="backward")
