"""Functions of vectors in vectorised loops: which there are, how exact they are, and where they must not be."""

import math
import subprocess
import sys
import textwrap

import numba
import numpy as np
import pytest

import zygote_py as zg
from tests.checking.slopes import differences
from tests.modes import one_in
from zygote_py.numba_adapter.linking import vector_functions

pytestmark = [
    pytest.mark.optimised,
    pytest.mark.skipif(not vector_functions.known_functions(), reason="there is no libmvec"),
]

RANGES = {
    "exp": (-700.0, 700.0),
    "log": (1e-300, 1e300),
    "sin": (-1e4, 1e4),
    "cos": (-1e4, 1e4),
    "tan": (-1e3, 1e3),
    "asin": (-1.0, 1.0),
    "acos": (-1.0, 1.0),
    "atan": (-1e6, 1e6),
    "sinh": (-700.0, 700.0),
    "cosh": (-700.0, 700.0),
    "tanh": (-20.0, 20.0),
    "log10": (1e-300, 1e300),
    "log2": (1e-300, 1e300),
    "exp2": (-1000.0, 1000.0),
    "expm1": (-30.0, 700.0),
    "log1p": (-0.999, 1e6),
    "asinh": (-1e6, 1e6),
    "acosh": (1.0, 1e6),
    "atanh": (-0.999, 0.999),
}


def loop_of(function):
    def run(x, out):
        for i in range(len(x)):
            out[i] = function(x[i])

    return run


def vectors(dispatcher):
    (text,) = dispatcher.inspect_llvm().values()
    calls = [line for line in text.splitlines() if "call " in line and "@_ZGV" in line]
    return {line.partition("@_ZGV")[2].partition("(")[0] for line in calls}


@pytest.mark.parametrize("name", RANGES)
def test_they_are_off_by_at_most_four_units(name):
    function = getattr(math, name)
    compiled = zg.njit(fastmath=True)(loop_of(function))
    low, high = RANGES[name]
    x = np.geomspace(low, high, 4001) if low > 0.0 else np.linspace(low, high, 4001)
    found = np.empty_like(x)
    compiled(x, found)
    expected = getattr(np, {"asin": "arcsin", "acos": "arccos", "atan": "arctan"}.get(name, name))(
        x.astype(np.longdouble)
    )
    units = np.abs(found - expected) / np.spacing(np.abs(expected).astype(float))
    assert units.max() < 4.5
    assert {each.partition("_")[2] for each in vectors(compiled)} == {name}


def test_several_in_one_loop():
    def run(x, out):
        for i in range(len(x)):
            out[i] = math.exp(x[i]) * math.cos(x[i]) + x[i] ** 1.3

    compiled = zg.njit(fastmath=True)(run)
    x, out = np.linspace(0.1, 3.0, 1003), np.empty(1003)
    compiled(x, out)
    np.testing.assert_allclose(out, np.exp(x) * np.cos(x) + x**1.3, rtol=1e-14, atol=1e-14)
    assert {each.partition("_")[2] for each in vectors(compiled)} == {"exp", "cos", "pow"}


def test_the_error_function():
    compiled = zg.njit(fastmath=True)(loop_of(math.erf))
    x = np.linspace(-4.0, 4.0, 1001)
    out = np.empty_like(x)
    compiled(x, out)
    np.testing.assert_allclose(out, [math.erf(each) for each in x], rtol=1e-15, atol=1e-300)
    assert vectors(compiled)


def test_special_values():
    compiled = zg.njit(fastmath={"afn", "contract"})(loop_of(math.exp))
    x = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e308, -1e308, 710.0] * 4)
    out = np.empty_like(x)
    compiled(x, out)
    with np.errstate(over="ignore"):
        np.testing.assert_allclose(out, np.exp(x), rtol=1e-15)


def test_single_precision():
    compiled = zg.njit(fastmath=True)(loop_of(math.exp))
    x = np.linspace(-5.0, 5.0, 1001).astype(np.float32)
    out = np.empty_like(x)
    compiled(x, out)
    np.testing.assert_allclose(out, np.exp(x), rtol=5e-7)
    assert any(each.endswith("_expf") for each in vectors(compiled))


@pytest.mark.parametrize("flags", [False, {"reassoc", "contract"}, {"nnan", "ninf"}], ids=["none", "order", "finite"])
def test_where_no_approximation_is_allowed_there_are_none(flags):
    compiled = zg.njit(fastmath=flags)(loop_of(math.exp))
    plain = numba.njit(fastmath=flags)(loop_of(math.exp))
    x = np.linspace(-5.0, 5.0, 1001)
    found, expected = np.empty_like(x), np.empty_like(x)
    compiled(x, found)
    plain(x, expected)
    np.testing.assert_array_equal(found, expected)
    assert not vectors(compiled)


def test_gradients_have_them():
    @numba.njit(fastmath=True)
    def logsumexp(x):
        s = 0.0
        for i in range(len(x)):
            s += math.exp(x[i])
        return math.log(s)

    df = zg.gradient(logsumexp)
    x = np.linspace(-1.0, 1.0, 1001)
    np.testing.assert_allclose(df(x), np.exp(x) / np.exp(x).sum(), rtol=1e-13)
    assert "_exp(" in "".join(line.partition("@_ZGV")[2] for line in df.inspect_llvm(x).splitlines())


def test_without_the_library_nothing_changes(monkeypatch):
    monkeypatch.setattr(vector_functions, "_symbol", lambda *_: None)
    compiled = zg.njit(fastmath=True)(loop_of(math.exp))
    x = np.linspace(-5.0, 5.0, 101)
    out = np.empty_like(x)
    compiled(x, out)
    np.testing.assert_allclose(out, np.exp(x), rtol=1e-14)
    assert not vectors(compiled)


def test_it_is_used_as_numbas():
    assert zg.njit(lambda x: x + 1)(2) == 3
    assert zg.njit("f8(f8)")(lambda x: x * 2.0)(3.0) == 6.0
    assert zg.njit(fastmath=True)(lambda x: x * 2.0)(3.0) == 6.0
    assert isinstance(zg.njit(lambda x: x), numba.core.registry.CPUDispatcher)


PROGRAM = """
    import math, sys
    import numpy as np
    import zygote_py as zg

    @zg.njit(fastmath=True, cache=True)
    def total(x):
        s = 0.0
        for i in range(len(x)):
            s += math.exp(x[i]) * math.cos(x[i])
        return s

    x = np.linspace(-1.0, 1.0, 1001)
    df = zg.gradient(total)
    print(float(total(x)), float(df(x).sum()), sum(total.stats.cache_hits.values()))
"""


def test_a_second_process_finds_the_code(tmp_path):
    script = tmp_path / "program.py"
    script.write_text(textwrap.dedent(PROGRAM))

    def run():
        done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True, cwd=tmp_path)
        return done.stdout.split()

    *first, hits = run()
    assert hits == "0"
    *second, hits = run()
    assert hits == "1"
    assert first == second
    x = np.linspace(-1.0, 1.0, 1001)
    assert float(first[0]) == pytest.approx(np.sum(np.exp(x) * np.cos(x)), rel=1e-13)
    assert float(first[1]) == pytest.approx(np.sum(np.exp(x) * (np.cos(x) - np.sin(x))), rel=1e-12)


def test_left_out(monkeypatch):
    monkeypatch.setenv("ZYGOTE_PY_WITHOUT", "vector-functions")
    compiled = zg.njit(fastmath=True)(loop_of(math.exp))
    x, out = np.linspace(0.0, 1.0, 10), np.empty(10)
    compiled(x, out)
    assert vectors(compiled) == set()
    np.testing.assert_allclose(out, np.exp(x), rtol=1e-15)


# ----------------------------------------------------------------------------- loops without functions of vectors


def of_gamma_functions(x):
    """The library has none."""
    s = 0.0
    for i in range(len(x)):
        s += math.gamma(x[i] + 1.0) + math.lgamma(x[i] + 0.5)
    return s


def in_no_loop(x):
    return math.exp(x[0]) * math.cos(x[1])


def of_what_is_handed_on(x):
    y = 0.3
    for i in range(len(x)):
        y = math.exp(-y * x[i])
    return y


def left_early(x):
    s = 0.0
    for i in range(len(x)):
        s += math.exp(x[i])
        if s > 1e6:
            break
    return s


def at_places(x):
    """Each round reads what one of the three before it has stored."""
    y = np.full(3, 0.5)
    for i in range(len(x)):
        y[i % 3] = y[i % 3] * math.exp(0.01 * x[i]) + 0.1
    return y[0] * y[1]


def without_a_count(x):
    s, i = 0.0, 0
    while s < 12.5:
        s += math.exp(x[i])
        i += 1
    return s


def of_the_element_before(x):
    y = x.copy()
    for i in range(1, len(y)):
        y[i] = math.sin(y[i - 1]) + x[i]
    return y[-1]


ONE_BY_ONE = [of_gamma_functions, in_no_loop, of_what_is_handed_on, left_early, at_places, without_a_count]
ONE_BY_ONE += [of_the_element_before]


@pytest.mark.parametrize("f", one_in(3, ONE_BY_ONE), ids=lambda f: f.__name__)
def test_gradients_without_them(f):
    x = np.linspace(0.1, 0.9, 24)
    df = zg.value_and_gradient(numba.njit(fastmath=True)(f), mode="reverse")
    value, found = df(x)
    assert value == pytest.approx(f(x), rel=1e-12)
    np.testing.assert_allclose(found, *differences(f, x), rtol=1e-7, atol=1e-9)
    assert not [line for line in df.inspect_llvm(x).splitlines() if "call " in line and "@_ZGV" in line]
