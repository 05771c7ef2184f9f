"""Which integers are known never to be negative, and that elements at all others are found from the end of an axis."""

from __future__ import annotations

import numba
import numpy as np
import pytest

from zygote_py.numba_adapter.emitted.never_negative import NeverNegative, never_negative
from zygote_py.numba_adapter.emitted.pipeline import EmittedPipeline

pytestmark = pytest.mark.compiled


def emitted(function):
    return numba.njit(function, pipeline_class=EmittedPipeline)


@pytest.fixture
def names(monkeypatch):
    """Compile a function for arguments and call it; the variables of its text that are never negative."""

    def found(function, *args):
        seen = []

        def change(self, state):
            seen.append({name.split(".")[0] for name in never_negative(state.func_ir.blocks, state.typemap.get)})
            return False

        monkeypatch.setattr(NeverNegative, "change", change)
        emitted(function)(*args)
        return seen[-1]

    return found


def triangle(a, w):
    n, s = len(a), 0.0
    at = n
    for j in range(n):
        for k in range(j + 1, n):
            s += w[at] * a[k]
            at += 1
    return s


def of_records(n, w):
    kept = np.empty(n, np.int64)
    at = 0
    for i in range(n):
        kept[i] = at
        at += 2 if i > 1 else 1
    s = 0.0
    for i in range(n - 1, -1, -1):
        back = kept[i]
        for k in range(2):
            place = back + k
            s = s * 0.5 + w[place]
    return s


def clipped(n, a):
    low = max(n, 0)
    high = min(low, len(a) - 1)
    both = min(low, a.shape[0])
    half = both // 2
    return a[half] + a[high]


def flattened(a, n):
    rows, s = len(a) // 3, 0.0
    for i in range(rows):
        for j in range(3):
            place = i * 3 + j
            turned = (2 - j) * rows + i
            given = n * i
            s = 0.5 * s + a[place] * a[turned] + a[given]
    return s


KNOWN = [
    (flattened, (np.arange(6.0), 2), {"rows", "i", "j", "place"}, {"n", "turned", "given"}),
    (triangle, (np.arange(4.0), np.arange(20.0)), {"n", "at", "j", "k"}, set()),
    (of_records, (4, np.arange(20.0)), {"at", "back", "k", "place", "i"}, {"n"}),
    (clipped, (3, np.arange(4.0)), {"low", "both", "half"}, {"high", "n"}),
]


@pytest.mark.parametrize(("function", "args", "known", "other"), KNOWN)
def test_what_is_known(names, function, args, known, other):
    found = names(function, *args)
    assert known <= found
    assert not other & found
    assert emitted(function)(*args) == function(*args)


def from_the_end(a):
    s = 0.0
    for i in range(-len(a), 0):
        s = 0.5 * s + a[i]
    return s


def one_before(a):
    s = 0.0
    for i in range(len(a)):
        s = 0.5 * s + a[i - 1] * a[i]
    return s


def past_zero(a):
    s = 0.0
    for i in range(len(a) - 1, -len(a) - 1, -1):
        s = 0.5 * s + a[i]
    return s


def counted_down(a):
    s, at = 0.0, len(a) - 1
    for _ in range(2 * len(a)):
        s = 0.5 * s + a[at]
        at -= 1
    return s


def begun_below(a):
    s, at = 0.0, -len(a)
    while at < len(a):
        s = 0.5 * s + a[at]
        at += 1
    return s


def in_a_record(a):
    places = np.zeros(3, np.int64)
    places[0] = len(a) - 1
    places[2] = -2
    s = 0.0
    for i in range(3):
        s = 0.5 * s + a[places[i]]
    return s


def in_a_record_through_a_view(a):
    places = np.zeros(3, np.int64)
    places[1:] = -2
    s = 0.0
    for i in range(3):
        s = 0.5 * s + a[places[i]]
    return s


def chosen(a):
    s = 0.0
    for i in range(len(a)):
        at = i if a[i] > 1.5 else -1
        s = 0.5 * s + a[at]
    return s


def of_a_hash(a):
    s, h = 0.0, 12345
    for _ in range(40):
        h = h * 6364136223846793005 + 1442695040888963407  # overflows on purpose
        s = 0.5 * s + a[h // 2305843009213693952] + a[h % 4]
    return s


def of_a_hash_of_lengths(a):
    h = len(a) * 65521
    h = h * 65521 + 3
    h = h * 65521 + 3
    h = h * 65521 + 3  # overflows
    return a[h // 2305843009213693952] + a[h % 4]


def of_doubling(a):
    s, h = 0.0, 3
    for _ in range(200):
        h = h + h + 1  # overflows, too
        s = 0.5 * s + a[h // 2305843009213693952]
    return s


def of_a_tuple(a):
    s = 0.0
    for i in (0, -1, 2):
        s = 0.5 * s + a[i]
    return s


def given(a, n=-2):
    return a[n] + a[n + 1]


def of_two_axes(a):
    b = a.reshape(2, 3)
    s = 0.0
    for i in range(2):
        for j in range(-3, 0):
            s = 0.5 * s + b[i, j] * b[i - 1, 1]
    return s


NEGATIVE = [
    from_the_end,
    one_before,
    past_zero,
    counted_down,
    begun_below,
    in_a_record,
    in_a_record_through_a_view,
    chosen,
    of_a_hash,
    of_a_hash_of_lengths,
    of_doubling,
    of_a_tuple,
    given,
    of_two_axes,
]


@pytest.mark.parametrize("function", NEGATIVE)
def test_negative_indices_count_from_the_end(function):
    a = np.array([1.0, 2.5, -3.0, 0.5, 7.0, 4.0])
    assert emitted(function)(a) == numba.njit(function)(a)
