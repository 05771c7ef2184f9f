"""Ways to write a function: `*args`, `match`, `:=`, chained comparisons, `while ... else`, unpacking in calls."""

import math

import numba
import numpy as np
import pytest

from tests.checking.derivatives import check_derivatives
from zygote_py import DifferentiationError, gradient, value_and_gradient

pytestmark = pytest.mark.interpreted


def sum_of_squares(*xs):
    s = 0.0
    for x in xs:
        s += x * x
    return s


def first_times_rest(a, *rest, k=2.0):
    if len(rest) == 0:
        return a * k
    return a * rest[0] + rest[-1] * len(rest) * k


def passed_on(*xs):
    return first_times_rest(*xs) + sum_of_squares(*xs, 2.0)


def mixed(*xs):
    return xs[0] * np.sum(xs[1]) + xs[2][0]


@numba.njit
def compiled(*xs):
    return xs[0] * xs[1]


def three(a, b, c=2.0):
    return a * b + c * c


def star_and_keyword(x, y):
    t = (y, x * y)
    return three(*t, c=x)


def calls_with_stars(x, y):
    t = (y, x * y)
    return (
        sum_of_squares(x, y, x * y)
        + first_times_rest(x)
        + first_times_rest(x, *t)
        + first_times_rest(x, y, k=x)
        + passed_on(*t)
        + three(*t)
        + three(x, *t)
        + star_and_keyword(x, y)
        + compiled(*t)
        + mixed(x, np.array([x, y]), t)
    )


def matches(n, x, y):
    s = x
    for i in range(4):
        match (i + n) % 4:
            case 0:
                s = s * y
            case 1 | 2:
                s += x
            case k if s > 2.0:
                s -= k * y
            case k:
                s += k * x
    match s:
        case v if v > 1.0:
            return v * v
        case v:
            return v + y


def matches_names(kind, x):
    match kind:
        case "sin":
            return math.sin(x)
        case "cos":
            return math.cos(x)
        case _:
            return x * x


def walrus(x, y):
    s = 0.0
    if (z := x * y) > 0.5:
        s += z * z
    t = (u := math.sin(z)) + u * x
    n = 0
    while (v := x + n * y) < 4.0 and (w := v * v) > 0.0:
        s += w * t
        n += 1
    return s + v * z


def chained(x, y):
    if 0.0 < x < y < 2.0:
        return x * y
    return x + y if not 0.1 < y <= 0.5 else x - y


def while_else(x, n):
    while n > 0:
        n -= 1
        if x > 3.0:
            x = x * 2.0
            break
        x = x * 1.5
    else:
        x = x * x
    for i in range(n):
        x += i * x
        if x > 50.0:
            break
    else:
        x = math.sin(x)
    return x


@pytest.mark.compiled
def test_stars_in_called_functions():
    check_derivatives(calls_with_stars, 1.3, 0.7)


@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_differentiated_functions_of_any_number_of_arguments(count):
    args = (1.3, 0.7, -0.4, 2.1, 0.2)[:count]
    check_derivatives(sum_of_squares, *args)
    check_derivatives(first_times_rest, *args) if count > 1 else None
    check_derivatives(passed_on, *args)


def test_the_gradient_of_a_star_is_flat():
    df = gradient(sum_of_squares)
    assert df(3.0, 4.0) == (6.0, 8.0)
    assert df(3.0) == 6.0
    assert df(1.0, 2.0, 3.0) == (2.0, 4.0, 6.0)
    assert gradient(compiled)(3.0, 4.0) == (4.0, 3.0)
    dx, da, dt = gradient(mixed)(2.0, np.array([1.0, 3.0]), (1.0, 2.0))
    assert (dx, list(da), dt) == (4.0, [2.0, 2.0], (1.0, 0.0))
    assert value_and_gradient(first_times_rest, wrt="rest")(2.0, 3.0, 4.0) == (22.0, (2.0, 4.0))
    assert gradient(first_times_rest, wrt=("a", "rest"))(2.0, 3.0) == (3.0, 4.0)
    assert gradient(first_times_rest, wrt="a")(2.0, 3.0) == 3.0


@pytest.mark.parametrize("n", [0, 1, 2, 3])
@pytest.mark.parametrize("x", [0.4, 1.7])
def test_match(n, x):
    check_derivatives(matches, n, x, 0.8)


@pytest.mark.compiled
@pytest.mark.parametrize("kind", ["sin", "cos", "tan"])
def test_match_of_strings(kind):
    check_derivatives(matches_names, kind, 1.3)


@pytest.mark.parametrize("x", [0.4, 1.3, -0.2])
def test_assignment_expressions(x):
    check_derivatives(walrus, x, 0.83)


@pytest.mark.parametrize(("x", "y"), [(0.4, 0.9), (1.3, 0.3), (-0.2, 0.7)])
def test_chained_comparisons(x, y):
    check_derivatives(chained, x, y)


@pytest.mark.compiled
@pytest.mark.parametrize("n", [0, 1, 3, 6])
def test_loops_with_else(n):
    check_derivatives(while_else, 1.2, n)


def of_sequence(t, x):
    match t:
        case (a, b):
            return a * b * x
        case _:
            return x


def starred_target(x):
    a, *b = [x, x, x]
    return a * b[0]


def with_keywords(x, **options):
    return x * options["k"]


def calls_with_keywords(x):
    return with_keywords(x, k=2.0)


@pytest.mark.parametrize(
    ("f", "args", "message"),
    [
        (of_sequence, ((1.0, 2.0), 3.0), "a pattern of a sequence in `match` is not supported"),
        (starred_target, (1.0,), r"unpacking a value of type `list.* with `\*` is not supported"),
        (calls_with_keywords, (1.0,), r"`\*\*kwargs` is not supported"),
    ],
)
def test_refusals(f, args, message):
    with pytest.raises(DifferentiationError, match=message):
        gradient(f)(*args)
