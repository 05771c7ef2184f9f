"""Golden texts: what the adjoint of each form of control flow looks like, and the source that comes of it."""

import math

import pytest

from tests.adjoints.stages import stages
from zygote_py import gradient
from zygote_py.ir import parse_types
from zygote_py.ir.text.printer import text


def pow_loop(x, n):
    r = 1.0
    while n > 0:
        n -= 1
        r *= x
    return r


def branch(x, y):
    if x > y:  # noqa: SIM108
        r = x * y
    else:
        r = math.sin(x)
    return r * r


def left_by_break(x, n):
    s = 0.0
    for i in range(n):
        s += x * i
        if s > 10.0:
            break
    return s * s


def nested_loops(x, a):
    s = 0.0
    for i in range(a.shape[0]):
        t = x
        for j in range(a.shape[1]):
            t = t * a[i, j]
        s += t
    return s


def rows(a):
    s = 1.0
    for row in a:
        s *= row[0] + row[-1]
    return s


def largest(a):
    m = a[0]
    for i in range(1, len(a)):
        m = max(m, a[i])
    return m


CASES = [
    (pow_loop, "f64, i64"),
    (branch, "f64, f64"),
    (left_by_break, "f64, i64"),
    (nested_loops, "f64, f64[:, :]"),
    (rows, "f64[:, :]"),
    (largest, "f64[:]"),
]


@pytest.mark.parametrize(("func", "types"), CASES, ids=[func.__name__ for func, _ in CASES])
def test_every_stage_reads_as_it_did(func, types, golden):
    df = gradient(func, mode="reverse")
    given = parse_types(types)
    parts = [df.primal_ir(*given), df.adjoint_ir(*given), df.source(*given)]
    golden(f"adjoints/{func.__name__}", "\n\n".join(part.strip("\n") for part in parts))


def test_the_joint_function_is_printed_too():
    found = stages(branch, 1.0, 2.0)
    assert text(found.joint).startswith("joint branch(%x: f64, %y: f64) -> ")
