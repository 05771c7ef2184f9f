"""Arrays that helpers take by their addresses, and repeated axes: values as with NumPy and Numba's own lowering."""

from __future__ import annotations

import functools
import json
import os
import tempfile

import numba
import numpy as np
import pytest

from tests.fork_server import SETTINGS, forked
from tests.modes import one_in
from tests.numba_adapter.by_address_programs import CASES, chosen_in_the_loop, counts_from_the_end, emitted

pytestmark = pytest.mark.optimised

WITHOUT_HELPERS = (chosen_in_the_loop, counts_from_the_end)
PROGRAM = """
import json, os, traceback
from tests.numba_adapter.by_address_programs import CASES, check

for number in range(0, len(CASES), int(os.environ["ONE_IN"])):
    try:
        print(json.dumps(check(number)))
    except Exception:
        print(json.dumps([False, traceback.format_exc()]))
"""


@functools.cache
def outcomes(count):
    """Return the outcomes of one case in `count`, by number."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, **SETTINGS, "ZYGOTE_PY_VERIFY": "0", "ZYGOTE_PY_CACHE_DIR": folder}
        environment["ONE_IN"] = str(count)
        environment["PYTHONPATH"] = os.pathsep.join([os.getcwd(), environment.get("PYTHONPATH", "")])
        found = forked(PROGRAM, folder, environment)
    assert found.returncode == 0, found.stderr
    return {number * count: json.loads(line) for number, line in enumerate(found.stdout.splitlines())}


@pytest.mark.parametrize(
    "number", one_in(6, range(len(CASES))), ids=lambda number: f"{CASES[number][0].__name__}-{number}"
)
def test_same_as_numpy(number, request):
    takes_addresses, left = outcomes(1 if request.config.getoption("markexpr") == "long" else 6)[number]
    assert left == 0
    assert takes_addresses or CASES[number][0] in WITHOUT_HELPERS


def repeated(a, q, r):
    """Axes of length 1 are repeated: what an emitted function writes for `a + q * r`."""
    n, m = a.shape
    c, c_1, c_2, c_3 = q.shape[0] == n, q.shape[1] == m, r.shape[0] == n, r.shape[1] == m
    y = np.empty((n, m))
    for i in range(n):
        t, t_1 = i if c else 0, i if c_2 else 0
        for j in range(m):
            y[i, j] = a[i, j] + q[t, j if c_1 else 0] * r[t_1, j if c_3 else 0]
    for i in range(n - 1, -1, -1):
        t = i if c else 0
        for j in range(m - 1, -1, -1):
            q[t, j if c_1 else 0] += y[i, j]
    return y


@pytest.mark.parametrize(("n", "m"), [(3, 4), (1, 4), (3, 1), (1, 1), (0, 4), (9, 17)])
def test_repeated_axes(n, m):
    f, g = emitted(repeated), numba.njit(repeated)
    rng = np.random.default_rng(n + 10 * m)
    a = rng.normal(size=(n, m))
    for first in ((n, m), (1, m), (n, 1), (1, 1)):
        for second in ((n, m), (1, m), (n, 1), (1, 1)):
            q, r = rng.normal(size=first), rng.normal(size=second)
            found, expected = q.copy(), q.copy()
            np.testing.assert_array_equal(f(a, found, r), g(a, expected, r))
            np.testing.assert_array_equal(found, expected)


def test_a_condition_of_repeated_axes_makes_one_loop():
    f = emitted(repeated)
    f(np.ones((3, 4)), np.ones((3, 4)), np.ones((3, 4)))
    (text,) = f.inspect_llvm().values()
    assert text.count('asm "", "=r,0"') == 4
    assert text.count(" fmul ") < 20  # 64 in a loop for each of the values that the conditions may have
