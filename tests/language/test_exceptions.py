"""`try`: the path that ran is the path that is reversed, whatever raises, wherever it is caught."""

import linecache
import math
import random
import re

import numba
import numpy as np
import pytest

from tests.checking.derivatives import check_derivatives
from tests.modes import one_in
from zygote_py import DifferentiationError, gradient

pytestmark = pytest.mark.interpreted


def risky(v):
    if v > 2.0:
        raise ValueError("big")
    return v * v


@numba.njit
def compiled_risky(v):
    return risky_quotient(v) * v


@numba.njit
def risky_quotient(v):
    return 1.0 / v if v < 1.0 else risky_root(v)


@numba.njit
def risky_root(v):
    if v > 3.0:
        raise RuntimeError("large")
    return math.sqrt(v)


def conditional(x, y):
    s = x
    try:
        s = s * y
        if x > 2.0:
            raise ValueError("x")
        s = s + 3 * x
    except Exception:
        s = s * s
    return s


def in_callees(x, y):
    s = 0.0
    for i in range(4):
        try:
            s += risky(y * i + x * 0.3) * x
            s += compiled_risky(x * i)
        except:  # noqa: E722
            s += y * i
    return s


def quotients(x, n):
    s = 0.0
    for i in range(-2, 3):
        try:
            s += x / (i + n)
            s += x // (i + n + 1) + x % (i + n + 2)
        except Exception:
            s += x * x
        else:
            s *= 1.5
    return s


def with_finally(x, y):
    s = 0.0
    try:
        s += x * y
        if x > 2.0:
            raise ValueError("a")
        s += 3.0
    except Exception:
        s = s * 2 * y
    finally:
        s = s * s
    return s


def only_finally(x, y):
    s = 0.0
    for i in range(3):
        try:
            s += x * y
            if i == 1:
                continue
            s += y
        finally:
            s = s * x
    return s


def nested(x, y):
    s = 0.0
    for i in range(5):
        try:
            try:
                if i == 1:
                    raise ValueError("a")
                s += x * i
                if i == 3:
                    break
            except Exception:
                s += y * y
                if x > 2.0:
                    raise ValueError("b")  # noqa: B904
            s *= y
        except Exception:
            s = s + x * y
            continue
        s += 1
    return s


def returns(x, y):
    n = 0
    s = x
    while n < 6:
        n += 1
        try:
            s = risky(s * y)
            if n == 3:
                return s * x
        except Exception:
            s = s * 0.5
            if n > 4:
                return s * x * x
        s += y
    return s


def root_or(v, other):
    try:
        return 1.0 / v
    except Exception:
        return other * other


def tries_in_callees(x, y):
    s = root_or(x, y) * root_or(0.0, y)
    try:
        s += root_or(0.0, x) * risky(x * 2.0)
    except Exception:
        s *= y
    return s


def with_arrays(x, y):
    out = np.zeros(3)
    s = 0.0
    for i in range(3):
        try:
            out[i] = x[i] * y
            if x[i] > 1.5:
                raise ValueError("q")
            out[i] = out[i] * 2
        except Exception:
            s += out[i] * x[i]
    return s + np.sum(out * x)


def with_functions(x, y):
    def f(v):
        if v > 1.0:
            raise ValueError("f")
        return v * x

    s = 0.0
    for u in map(lambda v: v * y, (0.3, 1.0, 2.0)):  # noqa: C417
        try:
            s += f(u)
        except Exception:
            s += u * u
    return s


@pytest.mark.parametrize(
    "f",
    [conditional, in_callees, with_finally, only_finally, nested, returns, tries_in_callees, with_functions],
)
@pytest.mark.parametrize(("x", "y"), [(2.3, 0.7), (0.9, 1.4)])
def test_against_differences(f, x, y):
    check_derivatives(f, x, y)


@pytest.mark.compiled
@pytest.mark.parametrize("n", [0, 1, 5])
def test_division_by_zero(n):
    check_derivatives(quotients, 2.3, n)


def test_state_that_was_written_stays():
    check_derivatives(with_arrays, np.array([1.0, 2.0, 3.0]), 0.7)


@pytest.mark.compiled
def test_exceptions_that_are_not_caught():
    def raises_in_handler(x):
        try:
            if x > 1.0:
                raise ValueError("first")
            s = x * x
        except Exception:
            raise TypeError("second")  # noqa: B904
        return s

    def raises_behind_finally(x):
        s = x
        try:
            if x > 1.0:
                raise ValueError("first")
            s = x * x
        finally:
            s = s * 2.0
        return s

    assert gradient(raises_in_handler)(0.5) == 1.0
    with pytest.raises(TypeError, match="second"):
        gradient(raises_in_handler)(2.0)
    assert gradient(raises_behind_finally)(0.5) == 2.0
    with pytest.raises(RuntimeError):
        gradient(raises_behind_finally)(2.0)
    assert gradient(raises_in_handler)(0.25) == 0.5


def catches_one_kind(x):
    try:
        s = risky(x)
    except ValueError:
        s = x
    return s


def solves(x):
    try:
        s = np.linalg.solve(x, x[:, 1])[0] * x[1, 0] + np.linalg.inv(x)[0, 0]
    except Exception:
        s = x[0, 0] * x[0, 1]
    return s


@numba.njit
def inverse(x):
    return np.linalg.inv(x)


def inverts_in_a_function(x):
    try:
        s = inverse(x)[0, 1] * x[1, 1] + np.linalg.det(x)
    except Exception:
        s = x[0, 1] ** 2
    return s


def factorizes(x):
    s = 0.0
    for i in range(4):
        y = 0.5 * (x + x.T) - i * np.eye(2)
        try:
            s += np.sum(np.linalg.cholesky(y)) * x[0, 0]
        except Exception:
            s += x[0, 1] ** 2 * i
            continue
        s *= 1.5
    return s


def fits(x):
    z = 0.5 * (x + x.T)
    checked = np.where(x < 3.0, x, np.nan)
    try:
        y = np.linalg.pinv(checked)
        w, v = np.linalg.eigh(z)
        c, _, _, _ = np.linalg.lstsq(x, x[0])
    except Exception:
        return x[0, 0] ** 3
    return np.sum(y * y) + w[0] * v[0, 0] ** 2 + c[1]


REGULAR, SINGULAR, NEGATIVE = (
    np.array(x) for x in ([[2.5, 0.3], [0.3, 1.7]], [[1.0, 2.0], [2.0, 4.0]], [[-1.0, 0.0], [0.0, -2.0]])
)


@pytest.mark.parametrize(
    ("f", "x", "expected"),
    [
        *[(f, x, None) for f in (solves, inverts_in_a_function, factorizes, fits) for x in (REGULAR, NEGATIVE)],
        (fits, SINGULAR, None),
        (solves, SINGULAR, ([[2.0, 1.0], [0.0, 0.0]],)),  # the product of the first two
        (inverts_in_a_function, SINGULAR, ([[0.0, 4.0], [0.0, 0.0]],)),  # the square of the second
    ],
)
def test_linear_algebra(f, x, expected):
    """It was refused."""
    check_derivatives(f, x, expected=expected)


def adds(x):
    try:
        s = np.sum(x + x[0])
    except Exception:
        s = x[0, 0]
    return s


def recursive(x, n):
    if n < 0:
        raise ValueError("negative")
    return x if n == 0 else x * recursive(x, n - 1)


def calls_a_routine(x):
    try:
        s = recursive(x, 2)
    except Exception:
        s = x
    return s


def inverts_recursively(x, n):
    return np.linalg.inv(x)[0, 0] if n == 0 else inverts_recursively(x, n - 1) * x[0, 0]


def calls_one_that_inverts(x):
    try:
        s = inverts_recursively(x, 2)
    except Exception:
        s = x[0, 0]
    return s


def looks_up_recursively(d, n, x):
    return d[7] * x if n == 0 else looks_up_recursively(d, n - 1, x) * x


def calls_one_that_looks_up(x):
    d = {1: x}
    try:
        s = looks_up_recursively(d, 2, x)
    except Exception:
        s = x
    return s


def of_list(x):
    items = [x[0, 0], x[0, 1]]
    try:
        s = items[5]
    except Exception:
        s = x[0, 0]
    return s


@pytest.mark.parametrize(
    ("f", "arg", "message"),
    [
        (catches_one_kind, 1.0, "`except` of one kind of exception is not supported"),
        (adds, np.eye(2), "an operation on arrays or lists in `try` may raise"),
        (calls_a_routine, 2.0, "`recursive`, which stays a function in `try` may raise an exception"),
        (calls_one_that_inverts, np.eye(2), "`inverts_recursively`, which stays a function in `try` may raise"),
        (calls_one_that_looks_up, 2.0, "`looks_up_recursively`, which stays a function in `try` may raise"),
        (of_list, np.eye(2), "in `try` may raise an exception by itself"),
    ],
)
def test_refusals(f, arg, message):
    with pytest.raises(DifferentiationError, match=re.escape(message)):
        gradient(f)(arg)


class Writer:
    """Random programs with `try`: nested, in loops, with `break`, `continue` and `return` in all parts."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.lines = ["def program(x, y, n):", "    s = x", "    t = y"]

    def program(self):
        for _ in range(2):
            self.statement(1, 0, in_loop=False)
        self.lines.append("    return s + t * x")
        name = f"<random try {id(self)}>"
        text = "\n".join(self.lines) + "\n"
        linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
        scope = {"risky": risky, "math": math}
        exec(compile(text, name, "exec"), scope)
        return scope["program"]

    def block(self, depth, level, in_loop):
        for _ in range(self.random.randint(1, 2)):
            self.statement(depth, level, in_loop)

    def statement(self, depth, level, in_loop):
        pad = "    " * depth
        kinds = ["assign", "assign", "raise", "divide", "callee"]
        if level < 3:
            kinds += ["try", "try", "try", "for", "if"]
        if in_loop:
            kinds += ["break", "continue"]
        kinds += ["return"] * (level > 1)
        write = self.lines.append
        match self.random.choice(kinds):
            case "assign":
                write(f"{pad}{self.random.choice(['s = s * y + t', 't = t + s * x', 's = math.sin(s) + x', 't *= y'])}")
            case "raise":
                write(f"{pad}if {self.condition()}:")
                write(f"{pad}    raise ValueError('no')")
            case "divide":
                write(f"{pad}s = s + t / (n - {self.random.randint(0, 4)})")
            case "callee":
                write(f"{pad}t = t + risky(s * 0.5)")
            case "try":
                write(f"{pad}try:")
                self.block(depth + 1, level + 1, in_loop)
                write(f"{pad}except Exception:")
                self.handler(depth + 1, in_loop)
                if self.random.random() < 0.3:
                    write(f"{pad}else:")
                    write(f"{pad}    s = s * 1.25 + y")
                if self.random.random() < 0.3:
                    write(f"{pad}finally:")
                    write(f"{pad}    t = t * 0.5 + s")
            case "for":
                write(f"{pad}for i{level} in range(3):")
                self.block(depth + 1, level + 1, True)
            case "if":
                write(f"{pad}if {self.condition()}:")
                self.block(depth + 1, level + 1, in_loop)
            case "return":
                write(f"{pad}if {self.condition()}:")
                write(f"{pad}    return s * y - t")
            case jump:
                write(f"{pad}if {self.condition()}:")
                write(f"{pad}    {jump}")

    def handler(self, depth, in_loop):
        pad = "    " * depth
        self.lines.append(f"{pad}s = s * 0.75 + {self.random.choice(['y', 't', 'x * y'])}")
        if in_loop and self.random.random() < 0.3:
            self.lines.append(f"{pad}{self.random.choice(['continue', 'break'])}")
        elif self.random.random() < 0.2:
            self.lines.append(f"{pad}return s * t")

    def condition(self):
        return self.random.choice(["s > 2.0", "t < 0.5", "n > 2", "s * t > 1.0", "n == 1"])


@pytest.mark.parametrize("seed", one_in(2, one_in(10, range(8, 18), "compiled")))
def test_random_programs(seed):
    function = Writer(seed).program()
    checked = 0
    for args in ((0.8, 1.3, 1), (1.7, 0.6, 3), (-0.4, 0.9, 0)):
        try:
            function(*args)
        except (ValueError, ZeroDivisionError):
            continue
        check_derivatives(function, *args)
        checked += 1
    if not checked:
        pytest.skip("it raises for all arguments")
