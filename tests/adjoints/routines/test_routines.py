"""Functions that stay functions: called in several places, each differentiated once for each way of calling it."""

import math

import numba
import numpy as np
import pytest

from tests.adjoints.routines.test_recursion import BY_ROUTES, normal
from tests.checking.derivatives import check_derivatives
from zygote_py import gradient, hvp
from zygote_py.frontend import program

pytestmark = pytest.mark.interpreted


def sq(x):
    return x * x + math.sin(x)


def a1(x):
    return sq(x) + sq(x * 2)


def pair(x, y):
    return x * y, x + y, 3


def a2(x, y):
    a, b, k = pair(x, y)
    c, d, _ = pair(b, a * k)
    return c * d + a


def norm(v):
    s = 0.0
    for i in range(len(v)):
        s += v[i] * v[i]
    return math.sqrt(s)


def a3(x):
    return norm(x) * norm(x * 2.0)


def scale(v, k):
    for i in range(len(v)):
        v[i] *= k * v[i]


def a4(x, k):
    y = x.copy()
    scale(y, k)
    z = y * 2.0
    scale(y, k * 0.5)
    scale(z, 0.3)
    return np.sum(y * z)


def layer(W, b, x):
    return np.tanh(W @ x + b)


def a5(W, b, x):
    h = layer(W, b, x)
    h = layer(W, b, h)
    return np.sum(layer(W, b, h) ** 2)


def a6(x, n):
    s = 0.0
    for i in range(n):
        if i % 2 == 0:
            s += sq(x * i)
        else:
            s *= sq(s * 0.1)
    return s + sq(s)


def row(a, i):
    return a[i]


def a7(a):
    r = row(a, 0)
    q = row(a, 1)
    s = 0.0
    for j in range(len(r)):
        s += r[j] * q[j] * q[j]
    return s


def wr(a, i, v):
    a[i] = v * v
    return a


def a8(a, v):
    b = a * 1.0
    c = wr(b, 0, v)
    d = wr(b, 1, v * 2)
    c[0] *= 2.0
    return d[0] * c[1] + b[2]


def a9(x):
    y = x * 1.0
    s = 0.0
    for _k in range(3):
        s += norm(y)
        scale(y, 0.7)
        s += norm(y) * y[0]
    return s


def whl(x, n):
    while n > 0:
        n -= 1
        x = math.sin(x) * 1.1 + x * x * 0.1
        if x > 1.3:
            break
    return x


def a10(x, n):
    return whl(x, n) + whl(x * 1.2, n) * whl(x, 2)


def raises(x):
    if x < 0:
        raise ValueError("neg")
    return math.sqrt(x)


def a11(x):
    return raises(x) * raises(x + 1)


def nested(x):
    return a1(x) * sq(x)


def a12(x):
    return nested(x) + nested(2 * x) + a1(x)


def new(n, x):
    z = np.zeros(n)
    for i in range(n):
        z[i] = x * i
    return z, z[1:]


def a13(x):
    z, v = new(4, x)
    w, u = new(3, x * x)
    v[0] = z[2] * 2
    u[1] *= w[0] + x
    return np.sum(z) * np.sum(w)


def empty(x):
    if len(x) == 0:
        return np.zeros(2)
    return x


def a14(x):
    y = empty(x)
    z = empty(x * 2)
    return y[0] * z[1]


def swap(a, b):
    return b, a


def a15(x):
    a = x * 1.0
    b = x * 2.0
    for _i in range(3):
        a, b = swap(a, b)
        a[0] += b[0] * b[1]
    a, b = swap(a, b)
    return a[0] * b[0] + a[1]


def mutread(a):
    t = a[0] * a[1]
    a[0] = t * t
    return t


def a16(x):
    y = x * 1.0
    s = mutread(y) + mutread(y) * 2
    return s * y[0]


def con(x):
    return 3.0 * 2


def a17(x):
    return con(x) * x + con(x)


def ints(n):
    return n * 2 + 1


def a18(x, n):
    return x * ints(n) * ints(n + 1)


def st(p):
    return p[0] * p[1][0]


def a19(x, y):
    return st((x, (y, 2))) * st((y, (x, 1)))


def stp(u, v, dt):
    return u + dt * (u - u * v), v + dt * (u * v - v)


def a20(u, v, n):
    for _ in range(n):
        u, v = stp(u, v, 0.1)
        u, v = stp(u, v, 0.05)
    return u * v


def a21(x, n):
    s = 0.0
    for i in range(n):
        r = sq(x * (i + 1))
        if i % 2 == 0:
            s += r * sq(s)
        if i % 3 == 1:
            s += 0.5 * r
    return s


def addto(a, b):
    for i in range(len(a)):
        a[i] += b[i] * b[i]


def s1(x):
    y = x * 1.0
    addto(y, y)
    addto(y, x)
    return np.sum(y * x)


def s2(x):
    y = x * 1.0
    addto(y[1:], y[:-1])
    addto(y[1:], x[1:])
    return np.sum(y * x)


CASES = [
    (a1, (0.4,)),
    (
        a2,
        (
            0.4,
            1.3,
        ),
    ),
    (a3, (normal(4),)),
    (
        a4,
        (
            normal(3),
            0.7,
        ),
    ),
    (
        a5,
        (
            normal(3, 3),
            normal(3),
            normal(3),
        ),
    ),
    (
        a6,
        (
            0.3,
            4,
        ),
    ),
    (a7, (normal(2, 3),)),
    (
        a8,
        (
            normal(3),
            0.6,
        ),
    ),
    (a9, (normal(3),)),
    (
        a10,
        (
            0.4,
            5,
        ),
    ),
    (a11, (0.5,)),
    (a12, (0.3,)),
    (a13, (0.4,)),
    (a14, (normal(3),)),
    (a15, (normal(2),)),
    (a16, (normal(2),)),
    (a17, (0.3,)),
    (
        a18,
        (
            0.3,
            2,
        ),
    ),
    (
        a19,
        (
            0.3,
            0.4,
        ),
    ),
    (
        a20,
        (
            1.1,
            0.9,
            4,
        ),
    ),
    (a21, (0.3, 6)),
    (s1, (normal(3),)),
    (s2, (normal(4),)),
]


@pytest.fixture
def nothing_is_inlined(monkeypatch):
    """But what is called in one place only."""
    monkeypatch.setattr(program, "_MOST_STATEMENTS", -1)


@pytest.mark.usefixtures("nothing_is_inlined")
@pytest.mark.parametrize(("function", "args"), CASES, ids=[function.__name__ for function, _ in CASES])
def test_called(function, args):
    check_derivatives(function, *args, **BY_ROUTES)


@pytest.mark.usefixtures("nothing_is_inlined")
def test_the_source_names_them():
    source = gradient(a1).source(0.4)
    assert source.count("def sq_forward(") == 1
    assert source.count("def sq_reverse(") == 1
    assert source.count("sq_forward(") == 3


def recursive(x, n):
    return x if n == 0 else sq(0.5 * recursive(x, n - 1)) + sq(0.1 * x)


def starts(x, n):
    return recursive(x, n) + 1.0


@pytest.mark.usefixtures("nothing_is_inlined")
def test_what_only_a_routine_calls_is_a_routine():
    """`recursive` is a routine whatever its size, and it alone calls `sq`."""
    source = gradient(starts, wrt="x").source(0.4, 2)
    assert source.count("def sq_forward(") == 1
    assert source.count("sq_forward(") == 3


@pytest.mark.parametrize("depth", [4, 8, 16])
def test_a_diamond_of_functions_takes_linear_code(depth):
    """Each level may call the last in two places; inlined, there would be 2**depth of them."""
    namespace = {"math": math}
    text = "def f0(x): return math.sin(x)\n"
    for k in range(1, depth + 1):
        text += f"def f{k}(x):\n    if x > 0.5: return f{k - 1}(0.9 * x)\n    return f{k - 1}(1.1 * x + 0.1)\n"
    exec(text, namespace)
    lines = gradient(namespace[f"f{depth}"]).source(0.3).splitlines()
    assert len(lines) < 200 * depth


@pytest.mark.parametrize("depth", [15, 60])
def test_a_diamond_of_values_takes_linear_code(depth):
    """Each level uses the value of the last twice."""
    namespace = {"math": math}
    text = "def f0(x): return math.sin(x)\n"
    for k in range(1, depth + 1):
        text += f"def f{k}(x):\n    y = f{k - 1}(x)\n    return 0.5 * y + 0.1 * y * y\n"
    exec(text, namespace)
    df = gradient(namespace[f"f{depth}"])
    assert len(df.source(0.3).splitlines()) < 8 * depth
    y, d = math.sin(0.3), math.cos(0.3)
    for _ in range(depth):
        y, d = 0.5 * y + 0.1 * y * y, (0.5 + 0.2 * y) * d
    assert df(0.3) == pytest.approx(d, rel=1e-13)


def checked(x):
    if x < 0.0:
        raise ValueError("negative")
    return x * x


def only_checks(x):
    checked(x)
    checked(x + 1.0)
    return 2.0 * x


@pytest.mark.usefixtures("nothing_is_inlined")
def test_what_a_routine_raises_is_raised_though_nothing_needs_its_result():
    df = gradient(only_checks)
    assert df(1.0) == 2.0
    with pytest.raises(ValueError, match="negative"):
        df(-0.5)


@numba.vectorize
def inverse_square(x):
    return 10.0 / math.pow(x, 2)


@numba.vectorize
def grown(x, p):
    y = x
    while True:
        last = y
        y = y + 0.01 * inverse_square(last) * p
        if y - last <= 0.001:
            break
    return y


@numba.vectorize
def grown_less(x, p):
    return grown(x, p / (0.6 + p))


@numba.vectorize
def averaged(x, p):
    return (grown_less(x, p) + x) / 2.0


def test_records_that_are_handed_on_have_second_derivatives():
    def f(x, p):
        return averaged(x, p)

    h, of = 1e-5, gradient(f)
    expected = (np.array(of(2.0 + h, 0.4 - h)) - np.array(of(2.0 - h, 0.4 + h))) / (2.0 * h)
    np.testing.assert_allclose(hvp(f, wrt=("x", "p"))(2.0, 0.4, (1.0, -1.0)), expected, rtol=1e-6)
