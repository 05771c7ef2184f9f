"""Which pairs of elements of a vector occur in one term: the bandwidth of the Hessian."""

import math

import numpy as np
import pytest
from numba import types

from zygote_py.adjoints.analysis import hessian_bandwidth
from zygote_py.frontend import lower
from zygote_py.ir import make_canonical

VECTOR = types.float64[::1]


def squares(x, y, k):
    s = 0.0
    for i in range(len(x)):
        s += y[i] * x[i] ** 2
    return s


def neighbours(x, y, k):
    s = x[0] ** 2
    for i in range(len(x) - 1):
        s += 100.0 * (x[i + 1] - x[i] ** 2) ** 2 + (1.0 - x[i]) ** 2
    return 0.5 * s


def neighbours_by_slices(x, y, k):
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


def differences_of_differences(x, y, k):
    return np.sum(np.diff(np.diff(x)) ** 4) + np.dot(x, x)


def curvature(x, y, k):
    s = 0.0
    for i in range(1, len(x) - 1):
        s += (x[i + 1] - 2.0 * x[i] + x[i - 1]) ** 4
    return s


def backwards(x, y, k):
    s = 0.0
    for i in range(len(x) - 4, -1, -1):
        s -= x[i] * x[i + 3]
    return -s


def the_last_element(x, y, k):
    previous = x[0]
    s = 0.0
    for i in range(1, len(x)):
        s += math.cosh(x[i] - previous)
        previous = x[i]
    return s


def two_rounds_before(x, y, k):
    a, b = x[0], x[0]
    s = 0.0
    for value in x:
        s += value * a * b
        a, b = b, value
    return s


def latent_states(x, y, k):
    s = -0.5 * (1.0 - k * k) * x[0] ** 2
    for t in range(1, len(x)):
        s -= 0.5 * (x[t] - k * x[t - 1]) ** 2
    for t in range(len(x)):
        if y[t] > 0.0:
            s += y[t] * x[t] - math.exp(x[t])
        else:
            s -= math.exp(x[t])
    return s


def in_an_array(x, y, k):
    slopes = np.zeros_like(x)
    for i in range(1, len(x)):
        slopes[i] = x[i] - x[i - 1]
    s = 0.0
    for i in range(len(x) - 1):
        s += (slopes[i + 1] - slopes[i]) ** 2
    return s


def at_indices(x, y, k):
    s = 0.0
    for value in y:
        place = int(value)
        s += x[place] ** 3 + x[place]
    return s


def one_of_two(x, y, k):
    s = 0.0
    for i in range(2, len(x)):
        s += x[i] if x[i - 2] > 0.0 else x[0]
        s += max(x[i], x[i - 1])
    return s


def in_several_rounds(x, y, k):
    s = 0.0
    for _ in range(3):
        for i in range(len(x) - 1):
            for j in range(2):
                s += y[j] * x[i] * x[i + 1]
    return s


def called(x, y, k):
    s = 0.0
    for i in range(len(x) - 1):
        s += energy(x[i], x[i + 1])
    return s


def energy(a, b):
    return (a - b) ** 3


def fixed_places(x, y, k):
    return x[0] * x[2] + x[-1] ** 2


def linear(x, y, k):
    return np.sum(x * y) * k


BANDED = {
    squares: 0,
    neighbours: 1,
    neighbours_by_slices: 1,
    differences_of_differences: 2,
    curvature: 2,
    backwards: 3,
    the_last_element: 1,
    two_rounds_before: 2,
    latent_states: 1,
    in_an_array: 2,
    at_indices: 0,
    one_of_two: 1,
    in_several_rounds: 1,
    called: 1,
    fixed_places: 2,
    linear: 0,
}


@pytest.mark.parametrize("function", BANDED, ids=lambda each: each.__name__)
def test_bands(function):
    assert found(function) == BANDED[function]


def found(function):
    primal = lower(function, (VECTOR, VECTOR, types.float64)).function
    make_canonical(primal)
    return hessian_bandwidth(primal, primal.params[0])


def square_of_a_sum(x, y, k):
    s = 0.0
    for i in range(len(x)):
        s += x[i]
    return s * s


def first_with_all(x, y, k):
    s = 0.0
    for i in range(len(x)):
        s += x[i] * x[0]
    return s


def periodic(x, y, k):
    s = 0.0
    for i in range(len(x)):
        s += x[i] * x[i - 1]
    return s


def both_ends(x, y, k):
    return x[0] * x[-1]


def from_both_ends(x, y, k):
    n = len(x)
    s = 0.0
    for i in range(n):
        s += x[i] * x[n - 1 - i]
    return s


def reversed_view(x, y, k):
    return np.dot(x, x[::-1])


def every_second(x, y, k):
    z = x[::2]
    s = 0.0
    for i in range(len(z)):
        s += z[i] * x[i]
    return s


def all_pairs(x, y, k):
    s = 0.0
    for i in range(len(x)):
        for j in range(len(x)):
            s += x[i] * x[j]
    return s


def after_the_loop(x, y, k):
    s = 0.0
    last = 0.0
    for i in range(len(x)):
        last = x[i]
        s += last**2
    return s + last * x[0]


def recurrence(x, y, k):
    v = x[0]
    s = 0.0
    for i in range(len(x)):
        v = math.sin(v) + x[i]
        s += v
    return s


def recurrence_in_an_array(x, y, k):
    v = np.zeros(len(x))
    for i in range(1, len(x)):
        v[i] = v[i - 1] ** 2 + x[i]
    return np.sum(v)


def accumulated_in_one_place(x, y, k):
    v = np.zeros(1)
    for i in range(len(x)):
        v[0] += x[i]
    return v[0] ** 2


def exchanged(x, y, k):
    a, b = x.copy(), np.zeros(len(x))
    for _ in range(int(k)):
        for i in range(1, len(x)):
            b[i] = a[i - 1] * a[i]
        a, b = b, a
    return np.sum(a)


def an_index_that_counts(x, y, k):
    s = 0.0
    place = 0
    for i in range(len(x)):
        s += x[place] * x[i]
        place = (place + 3) % len(x)
    return s


def matrix_product(x, y, k):
    return np.sum(np.outer(y, y) @ x) ** 2


def cumulative(x, y, k):
    return np.sum(np.cumsum(x) ** 2)


def sorted_values(x, y, k):
    z = np.sort(x)
    s = 0.0
    for i in range(len(x)):
        s += z[i] * x[i]
    return s


def sorted_in_place(x, y, k):
    z = x.copy()
    z.sort()
    return np.sum(z * x)


def through_a_tuple(x, y, k):
    s = 0.0
    pair = (x, y)
    for i in range(len(x)):
        s += pair[0][i] * x[0]
    return s


def through_a_list(x, y, k):
    values = [x[0]]
    for i in range(1, len(x)):
        values.append(values[i - 1] * x[i])
    return values[-1]


def from_a_negative_start(x, y, k):
    s = 0.0
    for i in range(-1, len(x) - 1):
        s += x[i] * x[i + 1]
    return s


def last_of_two_arrays(x, y, k):
    z = x[:-1]
    return z[-1] * x[-1]


def from_the_end_of_a_slice(x, y, k):
    z = x[:-1]
    s = 0.0
    for i in range(-3, 0):
        s += z[i] * x[i]
    return s


def from_the_end_of_a_longer_array(x, y, k):
    d = np.zeros(len(x) + 5)
    for i in range(len(x)):
        d[i] = x[i] * x[i]
    return d[-6] * x[-6]


def from_the_end_of_differences(x, y, k):
    return np.diff(x)[-1] * x[:-2][-1]


DENSE = [
    last_of_two_arrays,
    from_the_end_of_a_slice,
    from_the_end_of_a_longer_array,
    from_the_end_of_differences,
    square_of_a_sum,
    first_with_all,
    periodic,
    both_ends,
    from_both_ends,
    reversed_view,
    every_second,
    all_pairs,
    after_the_loop,
    recurrence,
    recurrence_in_an_array,
    accumulated_in_one_place,
    exchanged,
    an_index_that_counts,
    matrix_product,
    cumulative,
    sorted_values,
    sorted_in_place,
    through_a_tuple,
    through_a_list,
    from_a_negative_start,
]


@pytest.mark.parametrize("function", DENSE, ids=lambda each: each.__name__)
def test_no_band(function):
    assert found(function) is None
