"""`back` is called again, from several threads, after arguments, results and captured variables have changed."""

import math
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from tests.checking.reference import central
from zygote_py import pullback

pytestmark = pytest.mark.interpreted


def kept_in_a_record(x, n):
    for _ in range(n):
        x = math.sin(x) * x + 0.5
    return x


def kept_on_a_stack(x, limit):
    while x < limit:
        x = x * x + 0.1
    return x


def rewound(x):
    y = x * 1.0
    for k in range(3):
        for i in range(len(y)):
            y[i] += 0.1 * math.sin(y[i - 1]) * (k + 1)
    return np.sum(y * y)


def written_to(x):
    s = 0.0
    for i in range(len(x)):
        s += x[i] * x[i - 1]
        x[i] = s
    return s


def views(x):
    return x[1:] * x[:-1]


CALLED_AGAIN = [
    (kept_in_a_record, (0.7, 4)),
    (kept_on_a_stack, (1.1, 50.0)),
    (rewound, (np.array([0.3, 1.2, -0.4]),)),
    (written_to, (np.array([0.3, 1.2, -0.4]),)),
    (views, (np.array([0.3, 1.2, -0.4]),)),
]


@pytest.mark.parametrize(("function", "args"), CALLED_AGAIN, ids=[function.__name__ for function, _ in CALLED_AGAIN])
def test_called_again_after_everything_has_changed(function, args):
    given = [arg.copy() if isinstance(arg, np.ndarray) else arg for arg in args]
    value, back = pullback(function, *given)
    seed = np.array([1.0, -2.0]) if isinstance(value, np.ndarray) else 1.5

    def weighed(*args):
        result = function(*(arg.copy() if isinstance(arg, np.ndarray) else arg for arg in args))
        return float(np.sum(result * seed))

    expected = central(weighed, *args, wrt=[0]).gradients[0]
    for each in (*given, value):
        if isinstance(each, np.ndarray):
            each[:] = np.nan
    pullback(function, *(2 * arg for arg in args))[1](seed)
    answers = []
    for _ in range(3):
        answers.append(back(seed)[0])
        np.testing.assert_allclose(answers[-1], expected, rtol=1e-8)
        if isinstance(answers[-1], np.ndarray):
            answers[-1] = answers[-1].copy()
            back(seed)[0][:] = 7.0
    with ThreadPoolExecutor(4) as pool:
        for answer in pool.map(lambda _: back(seed)[0], range(20)):
            np.testing.assert_array_equal(answer, answers[0])
    np.testing.assert_allclose(back(2 * seed)[0], 2 * np.asarray(answers[0]), rtol=1e-14)


def test_what_is_captured_may_change():
    scale = 2.0
    power = 2

    def f(x):
        return scale * x**power

    assert pullback(f, 3.0)[1](1.0) == (12.0,)
    _, back = pullback(f, 3.0)
    scale = 5.0
    assert pullback(f, 3.0)[1](1.0) == (30.0,)
    power = 3
    assert pullback(f, 3.0)[1](1.0) == (135.0,)
    assert back(1.0) == (12.0,)
    scale = np.float32(1.0)
    assert pullback(f, 3.0)[1](1.0)[0] == pytest.approx(27.0)


@pytest.mark.parametrize(
    ("function", "args"), CALLED_AGAIN[:4], ids=[function.__name__ for function, _ in CALLED_AGAIN[:4]]
)
def test_pickled(function, args):
    _, back = pullback(function, *(arg.copy() if isinstance(arg, np.ndarray) else arg for arg in args))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(back))(1.5)[0], back(1.5)[0])


def apply(function, x, y):
    return function(x) * y


def test_functions_among_the_arguments():
    for function, slope in ((math.sin, math.cos), (lambda t: t * t, lambda t: 2.0 * t)):
        value, back = pullback(apply, function, 0.7, 2.0)
        assert value == pytest.approx(function(0.7) * 2.0)
        assert back(1.5) == (None, pytest.approx(3.0 * slope(0.7)), pytest.approx(1.5 * function(0.7)))


def product(a, *rest):
    for each in rest:
        a *= each
    return a


def test_any_number_of_arguments():
    assert pullback(product, 2.0, 3.0)[1](1.0) == (3.0, 2.0)
    assert pullback(product, 2.0, 3.0, 5.0)[1](1.0) == (15.0, 10.0, 6.0)


def test_a_tuple_with_arrays_without_derivative():
    x, seed = np.array([2.0, -1.0]), np.array([1.0, 10.0])
    value, back = pullback(lambda x: (3.0 * x, (np.argsort(x), x > 0.0)), x)
    np.testing.assert_array_equal(value[1][0], np.argsort(x))
    for rest in (None, (None, None), value[1]):
        np.testing.assert_array_equal(back((seed, rest))[0], 3.0 * seed)

    def scatter(t):
        t[0][t[1][0]] *= 3.0
        return t[0].sum()

    ((found, nothing),) = pullback(scatter, (np.ones(3), np.array([2, 1])))[1](1.0)
    np.testing.assert_array_equal(found, [1.0, 1.0, 3.0])
    assert nothing is None
