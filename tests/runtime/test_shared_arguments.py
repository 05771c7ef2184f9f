"""Arguments that share memory where one is written to: which are refused, in which words, and what that compiles."""

from __future__ import annotations

import itertools

import numba
import numpy as np
import pytest

from tests.plain import plain
from zygote_py import DifferentiationError, gradient, pullback
from zygote_py.adjoints.routines import is_folded, memory_of, share_memory


def writing(count: int, written: int):
    """A function of so many arrays that writes to the first of them."""
    names = [f"a{number}" for number in range(count)]
    lines = [f"def f({', '.join(names)}):", "    s = 0.0"]
    lines += [f"    {each}[0] = {each}[0] * {each}[1]" for each in names[:written]]
    lines += [f"    s += {' + '.join(f'{each}[0]' for each in names)}", "    return s"]
    namespace: dict[str, object] = {}
    exec("\n".join(lines), namespace)
    return namespace["f"]


def some(count: int) -> list[np.ndarray]:
    return [np.array([1.0 + number, 2.0]) for number in range(count)]


@pytest.mark.parametrize(("count", "written"), [(2, 1), (2, 2), (3, 1), (3, 2), (4, 1)])
def test_pairs_are_named(count, written):
    run = plain(gradient(writing(count, written)).source(*some(count)))
    np.testing.assert_allclose(run(*some(count))[0], [2.0, 1.0])
    for one, other in itertools.combinations(range(count), 2):
        arrays = some(count)
        arrays[other] = arrays[one]
        if one >= written:
            run(*arrays)
            continue
        with pytest.raises(ValueError, match=f"the arguments `a{one}` and `a{other}` share memory, and one is written"):
            run(*arrays)


@pytest.mark.parametrize(("written", "names"), [(18, "one of `a0`, .*, `a17`"), (1, "`a0`")])
def test_of_many_pairs_those_written_to_are_named(written, names):
    df = gradient(writing(20, written))
    source = df.source(*some(20))
    assert source.count("raise ") == 1
    run = plain(source)
    run(*some(20))
    for one, other in [(0, 19), (3, 4), (17, 18), (18, 19), (19, 4)]:
        arrays = some(20)
        arrays[other] = arrays[one]
        if min(one, other) >= written:
            run(*arrays)
            continue
        with pytest.raises(ValueError, match=f"^{names} is written to, and shares memory with another argument: pass"):
            run(*arrays)
    empty = [np.zeros(0), *[np.ones(2) for _ in range(19)]]
    with pytest.raises(IndexError):  # it reaches the first element
        run(*empty)


@pytest.mark.parametrize("step", [1, 2, -1])
def test_what_overlaps(step):
    base = np.ones(40)

    def f(a, b, c, d, e):
        a[0] += b[0] * c[0] + d[0] * e[0]
        return a[0]

    def parts(*starts):
        return [base[start : start + 3 * abs(step)][::step] for start in starts]

    df = gradient(f)
    df(*parts(0, 6, 12, 18, 24))
    df(*parts(0, 6, 6, 18, 18))  # neither is written to
    df(*parts(0, 6, 12, 18)[:4], base[:0])
    if abs(step) == 2:
        df(*parts(0, 1, 12, 18, 24))  # in the gaps of each other
    for starts, other in [((6, 6, 12, 18, 24), "b"), ((24, 6, 12, 18, 24), "e"), ((2, 12, 18, 0, 24), "d")]:
        with pytest.raises(ValueError, match=f"the arguments `a` and `{other}` share memory"):
            df(*parts(*starts))


def test_calls_from_python_name_both_of_many_pairs():
    def f(state, out, *others):
        out[0] = state[0][0]
        state[1][0] *= 2.0
        for each in others:
            each[0] *= out[0]
            out[0] = each[0]
        return out[0] + state[1][0]

    df = gradient(f)
    state, out, *others = (np.ones(2), np.ones(3)), *some(6)
    df(state, out, *others)
    with pytest.raises(ValueError, match=r"the arguments `out` and `state\[1\]` share memory, and one is written to"):
        df((state[0], out), out, *others)
    with pytest.raises(ValueError, match=r"the arguments `out` and `others.*` share memory, and one is written to"):
        df(state, out, *others[:-1], out[:1])


def test_arrays_of_several_layouts():
    def f(a, b, c, m):
        for i in range(len(a)):
            a[i] *= b[i]
            b[i] += c[i] * m[i, 0]
            c[i] = a[i]
        return np.sum(a) + np.sum(b) + np.sum(c)

    df = gradient(f)
    a, b, c, m = np.ones(3), np.full(3, 2.0), np.full(3, 3.0), np.ones((3, 1))
    assert [each.tolist() for each in df(a, b, c, m)] == [[4.0] * 3, [3.0] * 3, [1.0] * 3, [[3.0]] * 3]
    for arrays, names in [((a, a, c, m), "`a` and `b`"), ((a, b, m[:, 0], m), "`c` and `m`")]:
        with pytest.raises(ValueError, match=f"the arguments {names} share memory"):
            df(*arrays)


def test_what_shares_memory():
    base = np.arange(24.0)
    whole, matrix = np.arange(3, dtype=np.uint8), base.reshape(4, 6)
    cases = [
        (base[:3], base[3:], False),
        (base[:4], base[3:], True),
        (base[::2], base[1::2], False),
        (base[::2], base[2::3], True),
        (base[::-2], base[0::2], False),
        (base[::-2], base[1::2], True),
        (base[5:2:-1], base[3:4], True),
        (base[5:2:-1], base[2:3], False),
        (base[3:3], base, False),
        (base, base[:0], False),
        (matrix[:, ::2], matrix[:, 1::2], False),
        (matrix[:, :3], matrix[:, 3:], True),  # rows of both lie between one another: taken to share
        (matrix[::2], matrix[1::2, ::2], True),
        (base.view(np.complex128).real, base.view(np.complex128).imag, False),
        (whole[:1], whole[1:], False),
        (base[4:5], base, True),
        (np.array(1.0), base, False),
        (base[3:4].reshape(()), base, True),
    ]
    for x, y, expected in cases:
        for one, other in ((x, y), (y, x)):
            found = bool(share_memory(memory_of(one), memory_of(other)))
            assert found == expected, (x, y)
            assert found or not np.shares_memory(one, other)


def test_what_is_folded():
    strided = np.lib.stride_tricks.as_strided
    base = np.arange(24.0)
    cases = [
        (base, False),
        (base.reshape(4, 6)[:, ::-2], False),
        (strided(base, (3, 4), (8, 8)), True),
        (strided(base, (5,), (0,)), True),
        (strided(base, (1, 5), (0, 8)), False),
        (strided(base, (0, 5), (0, 0)), False),
        (strided(base, (3, 2), (16, 8)), False),
        (strided(base, (3, 3), (16, 8)), True),
    ]
    for x, expected in cases:
        assert is_folded(x) == expected, (x.shape, x.strides)


@pytest.mark.parametrize("in_tuple", [False, True])
def test_a_pullback_looks_at_the_arrays_of_a_list_and_not_at_its_copies(in_tuple):
    def plain_list(xs, out):
        for x in xs:
            for i in range(len(out)):
                out[i] += x[i] ** 2
        return out.sum()

    def in_a_tuple(t, out):
        return plain_list(t[1], out)

    out = np.array([2.0, 3.0])
    for made in (list, numba.typed.List):
        xs = made([np.arange(2.0), out])
        with pytest.raises(ValueError, match="`out` is written to, and shares memory with an array in"):
            pullback(in_a_tuple, (1.0, xs), out) if in_tuple else pullback(plain_list, xs, out)
        np.testing.assert_array_equal(out, [2.0, 3.0])


# ------------------------------------------------------------------------------------ variables of arguments' names


def powers(w, x):
    """Replace `x` by new arrays, which are written to: the argument is not."""
    for _ in range(2):
        x = w @ x * 0.5
    return np.sum(x)


def powers_of_items(pair):
    w, x = pair
    for _ in range(2):
        new = np.empty_like(x)
        for i in range(len(x)):
            new[i] = w[i] * x[i]
        x = new
    return np.sum(x)


def overwritten(w, x):
    """Write to `x` in one case, to a new array in the other."""
    for k in range(2):
        if k == 1:
            x = x * 1.0
        x *= w
    return np.sum(x)


def test_arguments_replaced_by_new_arrays_may_share_memory():
    w = np.array([[0.5, 2.0], [1.0, -1.0]])
    ones = np.ones((2, 2))
    expected = 0.25 * (w.T @ w.T @ ones), 0.25 * ((ones @ w.T) @ w.T + w.T @ (ones @ w.T))
    dw, dx = gradient(powers)(w, w)
    np.testing.assert_allclose(dx, expected[0], rtol=1e-14)
    np.testing.assert_allclose(dw, expected[1], rtol=1e-14)
    _, back = pullback(powers, w, w)
    np.testing.assert_array_equal(back(1.0), (dw, dx))
    x = w[0].copy()
    np.testing.assert_allclose(gradient(powers_of_items)((x, x)), (2.0 * x * x, x * x), rtol=1e-14)
    with pytest.raises(ValueError, match="the arguments `w` and `x` share memory, and one is written to"):
        gradient(overwritten)(x, x)


def overwritten_by(rate, x):
    x += rate
    return np.sum(x * x)


def test_forward_mode_of_a_state_that_is_replaced():
    def f(rate, x):
        for _ in range(3):
            x = x + rate * np.sin(x)
        return np.sum(x)

    x = np.array([0.5, 1.5])
    forward, reverse = (gradient(f, wrt="rate", mode=mode) for mode in ("forward", "reverse"))
    assert forward(0.1, x) == pytest.approx(reverse(0.1, x), rel=1e-14)
    with pytest.raises(DifferentiationError, match="may write to its arguments"):
        gradient(overwritten_by, wrt="rate", mode="forward")(0.1, x)
