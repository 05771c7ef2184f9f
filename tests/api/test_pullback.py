"""`pullback`: kernels that write into their arguments, results of any structure, seeds, and what is refused.

What is expected stands beside each as a formula.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided

from zygote_py import DifferentiationError, gradient, pullback

pytestmark = pytest.mark.interpreted


@dataclass(frozen=True)
class State:
    x: np.ndarray
    out: np.ndarray
    rate: float


@dataclass(frozen=True)
class Model:
    name: str
    states: tuple[State, State]
    steps: np.ndarray


class Pair(NamedTuple):
    x: np.ndarray
    out: np.ndarray


X, OUT, SEED = np.array([0.5, 1.5]), np.array([3.0, 4.0]), np.array([1.0, -2.0])


def states() -> tuple[State, State]:
    return State(X.copy(), OUT.copy(), 3.0), State(2 * X, 2 * OUT, 5.0)


def close(found: Any, *expected: Any) -> None:
    assert isinstance(found, tuple)
    for one, other in zip(found, expected, strict=True):
        if other is None:
            assert one is None
        else:
            np.testing.assert_allclose(one, other)


def parts(structure: Any) -> tuple[Any, ...]:
    return structure if isinstance(structure, tuple) else tuple(vars(structure).values())


def leaves(tree: Any) -> Iterator[Any]:
    if isinstance(tree, tuple | State):
        for part in parts(tree):
            yield from leaves(part)
    else:
        yield tree


# Kernels that write into their arguments


def square(x, out):
    for i in range(len(x)):
        out[i] = x[i] * x[i] + 2.0 * out[i]


def square_fields(s):
    for i in range(len(s.x)):
        s.out[i] = s.x[i] * s.x[i] + 2.0 * s.out[i]


def scale_state(s):
    s.out[:] = s.rate * s.x * s.out


def test_a_kernel_that_returns_nothing():
    x, out = X.copy(), OUT.copy()
    value, back = pullback(square, x, out)
    assert value is None
    np.testing.assert_array_equal(out, X * X + 2 * OUT)
    for _ in range(2):
        close(back(out=SEED), 2 * X * SEED, 2 * SEED)
    with pytest.raises(DifferentiationError, match=r"no seed, and the function returns nothing\n.*back\(out=\.\.\.\)"):
        back()
    close(back(out=None), [0.0, 0.0], [0.0, 0.0])


@pytest.mark.compiled
def test_no_seed_is_one_for_a_real_number():
    for number in (np.float64, np.float32):
        _, back = pullback(lambda x: x * x, number(3.0))
        (dx,) = back()
        assert (dx, type(dx)) == (6.0, float)
        close(back(None), 0.0)
    with pytest.raises(DifferentiationError, match=r"no seed for a result of type array.*\n.*back\(seed\)"):
        pullback(lambda x: x * x, X)[1]()


def test_arguments_that_change_before_back_is_called():
    x, out = X.copy(), OUT.copy()
    _, back = pullback(square, x, out)
    x[:] = np.nan
    out[:] = np.nan
    close(back(out=SEED), 2 * X * SEED, 2 * SEED)


def test_the_gradients_are_new_arrays_each_time():
    _, back = pullback(square, X.copy(), OUT.copy())
    first = back(out=SEED)
    for each in first:
        each[:] = np.nan
    close(back(out=SEED), 2 * X * SEED, 2 * SEED)
    np.testing.assert_array_equal(SEED, [1.0, -2.0])


@pytest.mark.parametrize(
    "make", [lambda x, out: (x, out), Pair, lambda x, out: State(x, out, 1.0)], ids=["tuple", "NamedTuple", "dataclass"]
)
def test_arrays_in_structures_are_copied(make: Callable[..., Any]):
    def by_number(s):
        for i in range(len(s[0])):
            s[1][i] = s[0][i] * s[0][i] + 2.0 * s[1][i]

    s = make(X.copy(), OUT.copy())
    value, back = pullback(by_number if type(s) is tuple else square_fields, s)
    assert value is None
    np.testing.assert_array_equal(parts(s)[1], X * X + 2 * OUT)
    for each in parts(s)[:2]:
        each[:] = np.nan
    seed = make(np.zeros(2), SEED)
    for _ in range(2):
        (ds,) = back(s=seed)
        assert type(ds) is type(s)
        close(parts(ds)[:2], 2 * X * SEED, 2 * SEED)


def test_a_structure_of_structures():
    def kernel(model, k):
        for s in model.states:
            scale_state(s)
        model.steps[0] += k

    first, second = states()
    model = Model("two", (first, second), np.arange(3))
    _, back = pullback(kernel, model, 4)
    np.testing.assert_array_equal(first.out, 3 * X * OUT)
    np.testing.assert_array_equal(model.steps, [4, 1, 2])
    for state in model.states:
        state.x[:] = state.out[:] = np.nan
    d, dk = back(model=Model("any", (State(None, SEED, None), None), None))
    assert dk is None
    assert type(d) is Model
    assert d.name is None
    assert d.steps is None
    close(parts(d.states[0]), 3 * OUT * SEED, 3 * X * SEED, X * OUT @ SEED)
    close(parts(d.states[1]), [0.0, 0.0], [0.0, 0.0], 0.0)


def test_what_is_not_written_in_a_structure_holds_what_it_held():
    """Its adjoint afterwards is a part of its adjoint before, so that the pullbacks of two steps can be chained."""
    s = states()[0]
    _, back = pullback(scale_state, s)
    (ds,) = back(s=State(np.array([10.0, 20.0]), SEED, 100.0))
    close(parts(ds), 3 * OUT * SEED + [10.0, 20.0], 3 * X * SEED, X * OUT @ SEED + 100.0)

    def twice(s):
        scale_state(s)
        scale_state(s)

    s, t = states()[0], states()[0]
    _, first = pullback(scale_state, s)
    _, second = pullback(scale_state, s)
    (middle,) = second(s=State(None, SEED, None))
    (chained,) = first(s=middle)
    (at_once,) = pullback(twice, t)[1](s=State(None, SEED, None))
    np.testing.assert_array_equal(s.out, t.out)
    close(parts(chained), *parts(at_once))
    close(parts(chained), 18 * X * OUT * SEED, 9 * X * X * SEED, 6 * (X * X * OUT) @ SEED)


def test_a_kernel_that_writes_through_a_view():
    def kernel(m, x):
        for row in m:
            row[1:] *= x
        m.T[0] = x[0] * x[1]

    m, x = np.arange(6.0).reshape(2, 3), X.copy()
    _, back = pullback(kernel, m, x)
    seed = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    dm, dx = back(m=seed)
    close((dm,), [[0.0, 2 * X[0], 3 * X[1]], [0.0, 5 * X[0], 6 * X[1]]])
    close((dx,), [5 * X[1] + 2 * 1 + 5 * 4, 5 * X[0] + 3 * 2 + 6 * 5])


@pytest.mark.parametrize("layout", ["F", "strided", "reversed", "float32", "empty"])
def test_layouts(layout: str):
    def kernel(x, out):
        out[...] = x * x + 2.0 * out

    x = np.arange(1.0, 7.0).reshape(2, 3)
    x = {
        "F": np.asfortranarray(x),
        "strided": np.repeat(np.repeat(x, 2, 0), 2, 1)[::2, 1::2],
        "reversed": x[::-1, ::-1],
        "float32": x.astype(np.float32),
        "empty": x[:0],
    }[layout]
    before, out = x.copy(), x + 1
    _, back = pullback(kernel, x, out)
    seed = np.full(x.shape, 3.0, x.dtype)
    x[...] = 0.0
    for _ in range(2):
        found = back(out=seed)
        close(found, 2 * before * seed, 2 * seed)
        assert {each.dtype for each in found} == {x.dtype}


def test_what_a_kernel_raises():
    def kernel(x, out):
        if x[0] > 1.0:
            raise ValueError("too large")
        out[:] = x

    x, out = np.array([2.0, 0.0]), OUT.copy()
    with pytest.raises(ValueError, match="too large"):
        pullback(kernel, x, out)
    np.testing.assert_array_equal(out, OUT)


def test_shapes_that_do_not_fit():
    def kernel(x, out):
        out[:] = x

    with pytest.raises(ValueError):
        pullback(kernel, np.zeros(3), np.zeros(2))


# Results


def test_a_number_and_an_array():
    def kernel(x, out):
        out[:] = x * x
        return out[0] * x[1]

    value, back = pullback(kernel, X.copy(), OUT.copy())
    assert value == X[0] ** 2 * X[1]
    close(back(2.0, out=np.array([10.0, 100.0])), [4 * X[0] * X[1] + 20 * X[0], 2 * X[0] ** 2 + 200 * X[1]], [0.0, 0.0])
    close(back(1), [2 * X[0] * X[1], X[0] ** 2], [0.0, 0.0])
    close(back(None, out=np.array([10.0, 0.0])), [20 * X[0], 0.0], [0.0, 0.0])


def test_an_array():
    value, back = pullback(lambda x, k: k * x[::-1] * x[0], X.copy(), 3.0)
    np.testing.assert_array_equal(value, 3 * X[::-1] * X[0])
    seed = np.array([1.0, 10.0])
    close(back(seed), [3 * X[1] + 60 * X[0], 3 * X[0]], X[0] * X[1] + 10 * X[0] ** 2)


def test_the_argument_itself_and_a_view_of_it():
    def kernel(x):
        x *= 3.0
        return x, x[1:]

    x = X.copy()
    value, back = pullback(kernel, x)
    assert np.shares_memory(value[0], x) == np.shares_memory(value[1], x)
    close(back((SEED, np.array([10.0])), x=np.array([100.0, 1000.0])), [3 * (1 + 100), 3 * (-2 + 10 + 1000)])


def test_a_tuple():
    value, back = pullback(lambda x, n: (x[0], (n, x * x)), X.copy(), 3)
    assert value[1][0] == 3
    close(back((2.0, (None, SEED))), [2 + 2 * X[0] * SEED[0], 2 * X[1] * SEED[1]], None)
    close(back((2.0, None)), [2.0, 0.0], None)
    close(back((None, (7, SEED))), 2 * X * SEED, None)


def test_a_named_tuple():
    value, back = pullback(lambda x: Pair(x * x, x[0] * x), X.copy())
    assert type(value) is Pair
    close(back(Pair(SEED, np.ones(2))), [2 * X[0] * SEED[0] + 2 * X[0] + X[1], 2 * X[1] * SEED[1] + X[0]])
    close(back(Pair(SEED, None)), 2 * X * SEED)


def test_a_dataclass():
    def step(s, dt):
        return State(s.x + dt * s.out, s.out - dt * s.rate * s.x, s.rate)

    s = states()[0]
    value, back = pullback(step, s, 0.5)
    assert type(value) is State
    u, v = SEED, np.array([5.0, 7.0])
    ds, dt = back(State(u, v, 11.0))
    assert type(ds) is State
    close(parts(ds), u - 1.5 * v, 0.5 * u + v, 11 - 0.5 * X @ v)
    np.testing.assert_allclose(dt, OUT @ u - 3 * X @ v)


def test_an_argument_as_the_result():
    s = states()[0]
    value, back = pullback(lambda s: s, s)
    assert type(value) is State
    (ds,) = back(State(SEED, None, 7.0))
    close(parts(ds), SEED, [0.0, 0.0], 7.0)
    value, back = pullback(lambda s: (s.rate, s, s.x), s)
    (ds,) = back((1.0, State(SEED, OUT, 7.0), X))
    close(parts(ds), SEED + X, OUT, 8.0)
    value, back = pullback(lambda model: model.states, Model("two", states(), np.arange(3)))
    (d,) = back((None, State(SEED, OUT, 7.0)))
    close(parts(d.states[0]), [0.0, 0.0], [0.0, 0.0], 0.0)
    close(parts(d.states[1]), SEED, OUT, 7.0)


def test_an_integer_as_the_only_argument_is_taken_as_a_float():
    value, back = pullback(lambda x: x / 2 if x > 7 else x * x, 3)
    assert value == 9.0
    assert isinstance(value, float)
    close(back(2.0), 12.0)


def test_complex_results():
    value, back = pullback(lambda z: z * z, 1 + 2j)
    assert value == (1 + 2j) ** 2
    close(back(1.0), 2 * (1 - 2j))  # dz = conj(2 z) dy
    close(back(1j), 2 * (1 - 2j) * 1j)


# Seeds that are refused


def refused(call: Callable[[], object], *says: str) -> None:
    with pytest.raises(DifferentiationError) as caught:
        call()
    for each in says:
        assert each in caught.value.message, caught.value.message
    assert caught.value.hint


def test_seeds_of_the_wrong_shape_or_dtype():
    _, back = pullback(square, X.copy(), OUT.copy())
    needed = "shape (2,) and dtype float64"
    refused(lambda: back(out=np.zeros(3)), "`out`", "shape (3,) and dtype float64", needed)
    refused(lambda: back(out=np.zeros((2, 1))), "`out`", "shape (2, 1) and dtype float64", needed)
    refused(lambda: back(out=np.zeros(2, np.float32)), "`out`", "dtype float32", needed)
    refused(lambda: back(out=np.zeros(2, int)), "`out`", "dtype int64", needed)
    refused(lambda: back(out=np.zeros(2, complex)), "`out`", "dtype complex128", needed)
    refused(lambda: back(out=[1.0, 2.0]), "`out`", "[1.0, 2.0] of type `list`", needed)
    refused(lambda: back(out=1.0), "`out`", "1.0 of type `float`", needed)
    close(back(out=SEED), 2 * X * SEED, 2 * SEED)  # and it is as good as before


def test_seeds_of_the_wrong_name():
    _, back = pullback(square, X.copy(), OUT.copy())
    refused(lambda: back(x=SEED), "`x`, which the function does not write to")
    refused(lambda: back(y=SEED), "`y`, which is not a parameter")
    refused(lambda: back(SEED), "type none")
    refused(lambda: back(SEED, SEED), "2 seeds")
    _, back = pullback(lambda x: x, 1.0)
    refused(lambda: back(1.0, x=1.0), "`x`, which the function does not write to")
    _, back = pullback(lambda self, seed: self * seed, 2.0, 3.0)
    refused(lambda: back(1.0, self=1.0), "`self`")


def test_seeds_that_are_no_numbers():
    _, back = pullback(lambda x: x * x, 1.5)
    refused(lambda: back(np.zeros(2)), "the returned value", "shape (2,) and dtype float64", "needs a float64")
    refused(lambda: back(True), "True of type `bool`", "float64")
    refused(lambda: back("1"), "'1' of type `str`", "float64")
    refused(lambda: back(1j), "1j of type `complex`", "float64")
    refused(lambda: back((1.0,)), "a tuple of 1 items", "float64")
    for one in (1, 1.0, np.float32(1), np.int8(1)):
        close(back(one), 3.0)


def test_seeds_of_the_wrong_structure():
    _, back = pullback(lambda x: (x[0], (x, x[1])), X.copy())
    refused(lambda: back(1.0), "the returned value", "1.0 of type `float`", "a tuple of 2 items")
    refused(lambda: back((1.0, X, 2.0)), "a tuple of 3 items", "a tuple of 2 items")
    refused(lambda: back((1.0, X)), "`[1]` of the returned value", "shape (2,)", "a tuple of 2 items")
    refused(lambda: back((1.0, (np.zeros(3), 1.0))), "`[1][0]` of the returned value", "shape (3,)", "shape (2,)")
    s = states()[0]
    _, back = pullback(scale_state, s)
    refused(lambda: back(s=SEED), "`s`", "shape (2,)", "a `State`")
    refused(lambda: back(s=(None, SEED, None)), "`s`", "a tuple of 3 items", "a `State`")
    refused(lambda: back(s=Pair(SEED, SEED)), "`s`", "`Pair`", "a `State`")
    refused(lambda: back(s=State(None, SEED[:1], None)), "`s.out`", "shape (1,)", "shape (2,)")
    refused(lambda: back(s=State(None, SEED, SEED)), "`s.rate`", "shape (2,)", "a float64")
    model = Model("two", states(), np.arange(3))
    _, back = pullback(lambda model: scale_state(model.states[1]), model)
    refused(lambda: back(model=Model("", (None, State(X, 1.0, 1.0)), None)), "`model.states[1].out`", "1.0 of type")


# Arguments that share memory


def both_refuse(function: Callable[..., Any], *args: Any, names: tuple[str, str]) -> None:
    """`gradient` and `pullback` name the two, and nothing was written."""
    arrays = [arg for arg in leaves(args) if isinstance(arg, np.ndarray)]
    before = [array.copy() for array in arrays]
    for call in (pullback, lambda f, *given: gradient(f)(*given)):
        with pytest.raises(ValueError, match="share memory") as caught:
            call(function, *args)
        assert set(names) == set(re.findall("`.*?`", str(caught.value)))
        for one, other in zip(arrays, before, strict=True):
            np.testing.assert_array_equal(one, other)


def in_and_out(s, x):
    s.out[0] = x[0] * 2.0
    return s.out[0] * x[1]


def test_an_array_and_an_item_of_a_structure():
    x = X.copy()
    both_refuse(in_and_out, State(OUT.copy(), x, 1.0), x, names=("`s.out`", "`x`"))
    both_refuse(in_and_out, Pair(OUT.copy(), x), x, names=("`s.out`", "`x`"))
    close(pullback(in_and_out, State(x, OUT.copy(), 1.0), x)[1](1.0)[1:], [2 * X[1], 2 * X[0]])


def test_two_items_of_one_structure():
    def kernel(s):
        s.out[0] = s.x[0] * 2.0
        return s.out[0] * s.x[1]

    memory = np.arange(5.0)
    both_refuse(kernel, State(memory[:3], memory[2:], 1.0), names=("`s.x`", "`s.out`"))
    both_refuse(kernel, Pair(memory[1:], memory[:2]), names=("`s.x`", "`s.out`"))
    ((dx, _, _),) = (parts(each) for each in pullback(kernel, State(memory[:2], memory[2:], 1.0))[1](1.0))
    close((dx,), [2 * 1.0, 0.0])


def test_items_of_tuples_of_structures():
    def kernel(model):
        scale_state(model[0])
        return model[1][0].x[0]

    first, second = states()
    both_refuse(kernel, (first, (State(first.out, X, 1.0),)), names=("`model[0].out`", "`model[1][0].x`"))
    pullback(kernel, (first, (second,)))


def test_memory_that_is_only_read_may_be_shared():
    def kernel(s, x):
        return np.sum(s.x * x * s.out)

    x = X.copy()
    _, back = pullback(kernel, State(x, x[::-1], 1.0), x)
    x[:] = 0.0
    ds, dx = back(1.0)
    close(parts(ds), X * X[::-1], X * X, 0.0)
    close((dx,), X * X[::-1])


def double(x):
    x *= 2.0


def test_an_array_whose_elements_share_memory():
    def kernel(x):
        x[0, 0] = x[1, 0] * 2.0
        return x[0, 0] * x[1, 1]

    def reads(x):
        return x[0, 0] * x[1, 1]

    memory = np.arange(1.0, 5.0)
    folded = as_strided(memory, (2, 3), (8, 8))
    for call in (pullback, lambda f, *given: gradient(f)(*given)):
        with pytest.raises(ValueError, match="elements of the argument `x` share memory"):
            call(kernel, folded)
        with pytest.raises(ValueError, match="`x`"):
            call(kernel, as_strided(memory, (2, 2), (0, 8)))
    np.testing.assert_array_equal(memory, np.arange(1.0, 5.0))
    np.testing.assert_array_equal(gradient(reads)(folded), [[3.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    wide = np.zeros((4, 6))
    for layout in (wide[::2, ::3], wide[::-2, ::-3].T, wide[:1, ::2].T[:2, :], wide[::2, :1]):
        pullback(double, layout)


# Branches and loops


def branching(s, n, t):
    for i in range(n):
        if s.x[i % 3] > 0.0:
            s.x[i % 3] *= s.rate * t
            if s.x[0] > 5.0:
                break
        else:
            s.out[i % 2, :] += s.x[i % 3] * s.rate
    return s.x[0] * s.out[1, 1] * t


@pytest.mark.parametrize("n", [0, 1, 4, 9])
def test_seeds_of_all_results_against_differences(n: int):
    def state(v: np.ndarray) -> State:
        return State(v[:3].copy(), v[3:9].reshape(2, 3).copy(), v[9])

    def results(v: np.ndarray) -> np.ndarray:
        s = state(v)
        value = branching(s, n, v[10])
        return np.concatenate([s.x, s.out.ravel(), [s.rate, value]])

    rng = np.random.default_rng(n)
    for _ in range(5):
        v, seed, step = rng.normal(size=11), rng.normal(size=11), 1e-6
        expected = [seed @ (results(v + step * e) - results(v - step * e)) / (2 * step) for e in np.eye(11)]
        s = state(v)
        _, back = pullback(branching, s, n, v[10])
        s.x[:] = s.out[:] = np.nan
        ds, _, dt = back(seed[10], s=state(seed))
        found = np.concatenate([ds.x, ds.out.ravel(), [ds.rate, dt]])
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


def test_a_tuple_is_returned_on_several_paths():
    def f(x):
        if x > 0.0:
            return x * x, (x, 2)
        return -x, (3.0 * x, 4)

    value, back = pullback(f, 2.0)
    assert value == (4.0, (2.0, 2))
    assert back((1.0, (1.0, None))) == (5.0,)
    value, back = pullback(f, -2.0)
    assert value == (2.0, (-6.0, 4))
    assert back((1.0, (1.0, None))) == (2.0,)


def test_the_name_is_the_function_whatever_was_imported_before():
    program = "from zygote_py import Pullback, check_adjoint, pullback; print(pullback(lambda x: x * x, 3.0)[1](1.0))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "(6.0,)\n", done.stderr
