"""Tangents that rules give directly: of products, against bilinearity, and of linear algebra, against differences.

The emitted source runs in plain Python; one function of all operations is compiled too, for the types of its arrays.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import pytest
from numba import typeof

import zygote_py as zg
from tests.adjoints.rules.opaque_cases import CASES, Case, draw
from tests.modes import one_in
from tests.plain import plain
from zygote_py.adjoints.rules.formulas.opaque import SAMPLES
from zygote_py.api.directions import pushforward

pytestmark = pytest.mark.interpreted

PRODUCTS = (np.dot, operator.matmul, np.vdot)
DIRECT = (np.linalg.inv, np.linalg.solve, np.linalg.det, np.linalg.slogdet, np.linalg.cholesky, np.linalg.norm)
SPECIAL = (np.linalg.matrix_power,)
LAYOUTS = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "A": lambda x: np.repeat(np.repeat(x, 2, 0), 2, -1)[::2, ::2] if x.ndim == 2 else np.repeat(x, 2)[::2],
}


def pushed(f: Any, given: tuple[Any, ...], tangents: tuple[Any, ...]) -> Any:
    """The text of a pushforward, and the tangents that it computes."""
    text = pushforward(f).source(given, tangents)
    return text, plain(text)(given, tangents)[1]


def of_arrays(case: Case, arguments: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
    """A function of the arrays alone, and these."""
    names = [f"x{k}" for k in range(len(arguments))]
    given = [name for name, x in zip(names, arguments, strict=True) if isinstance(x, np.ndarray)]
    call = ", ".join(name if name in given else repr(x) for name, x in zip(names, arguments, strict=True))
    namespace: dict[str, Any] = {"op": case.op}
    exec(f"def function({', '.join(given)}):\n    return op({call})", namespace)
    return namespace["function"], tuple(x for x in arguments if isinstance(x, np.ndarray))


def differences(f: Any, given: tuple[Any, ...], tangents: tuple[Any, ...]) -> Any:
    """Differences of the results along a direction, of fourth order."""

    def at(h: float) -> Any:
        found = f(*(x + h * t for x, t in zip(given, tangents, strict=True)))
        return found if isinstance(found, tuple) else (found,)

    h = 1e-3
    points = zip(at(-2 * h), at(-h), at(h), at(2 * h), strict=True)
    return tuple((a - 8 * b + 8 * c - d) / (12 * h) for a, b, c, d in points)


@pytest.mark.parametrize("op", PRODUCTS, ids=lambda op: op.__name__)
@pytest.mark.parametrize("layouts", one_in(3, ["CC", "FC", "CF", "AC", "AA"]))
@pytest.mark.parametrize("dtype", [np.float64, np.complex64])
def test_products(op, layouts, dtype):
    rng = np.random.default_rng(1)
    if op is np.vdot:
        shapes = [((4,), (4,)), ((0,), (0,))]
    else:
        shapes = [((4,), (4,)), ((4,), (4, 3)), ((3, 4), (4,)), ((3, 4), (4, 2)), ((0, 4), (4, 2)), ((3, 0), (0, 2))]
    texts: dict[Any, str] = {}  # by the types: arrays that are empty may have those of others

    def pushed_once(given, tangents):
        types = tuple(map(typeof, (*given, *tangents)))
        if types not in texts:
            texts[types] = pushforward(lambda x, y: op(x, y)).source(given, tangents)
        return texts[types], plain(texts[types])(given, tangents)[1]

    for shape in shapes:
        a, b, ta, tb = (
            LAYOUTS[layout](draw(rng, dtype, *each)) for layout, each in zip(layouts * 2, shape * 2, strict=True)
        )
        text, found = pushed_once((a, b), (ta, tb))
        np.testing.assert_allclose(found, op(a + ta, b + tb) - op(a, b) - op(ta, tb), rtol=0, atol=1e-5)
        assert np.asarray(found).dtype == dtype
        assert text.count("def ") == 2 + ("check_lengths" in text)
        for number, (x, t) in enumerate(((a, ta), (b, tb))):
            one = pushed_once((a, b), (t, None) if number == 0 else (None, t))[1]
            np.testing.assert_allclose(one, op(t, b) if number == 0 else op(a, t), rtol=0, atol=1e-5)
            assert x is not one


def test_products_of_views_and_of_the_same_array():
    def f(a, x):
        return a.T @ x + a @ a[0] + a[:, ::2] @ x[:2]

    rng = np.random.default_rng(2)
    a, x, ta, tx = draw(rng, float, 3, 3), draw(rng, float, 3), draw(rng, float, 3, 3), draw(rng, float, 3)
    _, found = pushed(f, (a, x), (ta, tx))
    np.testing.assert_allclose(found, f(a + ta, x + tx) - f(a, x) - f(ta, tx), atol=1e-13)


def chosen() -> list[Any]:
    return [
        pytest.param(case, dtype, id=f"{case.name}-{dtype.__name__}")
        for case in CASES
        if case.op in (*DIRECT, *SPECIAL) and not (case.op is np.linalg.norm and "x" in case.name)
        for dtype in (np.float64, np.complex128)
    ]


@pytest.mark.parametrize(("case", "dtype"), chosen())
def test_linear_algebra(case, dtype):
    rng = np.random.default_rng(3)
    f, given = of_arrays(case, case.arguments(rng, dtype))
    tangents = tuple(draw(rng, dtype, *x.shape) for x in given)
    if case.op is np.linalg.cholesky:  # NumPy reads the lower triangle, and the real part of the diagonal
        tangents = tuple(t + np.conj(t.T) for t in tangents)
    text, found = pushed(f, given, tangents)
    assert "any_adjoint" not in text
    assert "transposed_" not in text
    several = found if isinstance(found, tuple) else (found,)
    for got, wanted in zip(several, differences(f, given, tangents), strict=True):
        size = 1.0 + np.max(np.abs(wanted), initial=0.0)
        np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-8 * size)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_one_argument_of_a_solution(layout):
    rng = np.random.default_rng(4)
    a, ta = (LAYOUTS[layout](draw(rng, float, 3, 3) + 3.0 * np.eye(3)) for _ in range(2))
    for shape in ((3,), (3, 2)):
        b, tb = (LAYOUTS[layout](draw(rng, float, *shape)) for _ in range(2))
        f = np.linalg.solve
        text, found = pushed(lambda a, b: f(a, b), (a, b), (None, tb))
        np.testing.assert_allclose(found, np.linalg.solve(a, tb), atol=1e-14)
        assert text.count("def ") == 2
        _, found = pushed(lambda a, b: f(a, b), (a, b), (ta, None))
        np.testing.assert_allclose(found, -np.linalg.solve(a, ta @ np.linalg.solve(a, b)), atol=1e-13)


def test_a_singular_matrix():
    a, t = np.array([[1.0, 2.0], [2.0, 4.0]]), np.array([[0.5, -1.0], [2.0, 0.25]])
    _, found = pushed(lambda a: np.linalg.det(a), (a,), (t,))
    assert found == pytest.approx(np.linalg.det(a + t) - np.linalg.det(t), abs=1e-14)
    for f in (lambda a: np.linalg.slogdet(a)[1], lambda a: np.linalg.inv(a)[0, 0]):
        with pytest.raises(np.linalg.LinAlgError):
            pushed(f, (np.zeros((2, 2)),), (t,))


def test_a_power_does_not_share_memory_with_its_base():
    def f(a):
        y = np.linalg.matrix_power(a, 1)
        y[0, 0] *= 3.0
        return y[0, 0] + 2.0 * a[0, 0]

    _, found = pushed(f, (np.eye(2),), (np.ones((2, 2)),))
    assert found == 5.0


def test_the_norm_at_zero():
    assert pushed(lambda x: np.linalg.norm(x), (np.zeros(3),), (np.ones(3),))[1] == 0.0


def everything(a, b, n):
    y = a @ b if n > 0 else np.linalg.inv(a)
    y = np.linalg.solve(a, y) if n > 1 else np.linalg.cholesky(a @ a.T) @ y
    return np.linalg.slogdet(a)[1] + np.linalg.norm(y) + np.vdot(a[0], b[:, 0]) + np.sum(y * np.dot(a, b[0]))


@pytest.mark.compiled
@pytest.mark.long
@pytest.mark.parametrize("layout", ["F", "C", "A"])
def test_types_where_branches_merge(layout):
    rng = np.random.default_rng(5)
    a, b, ta, tb = (LAYOUTS[layout](draw(rng, float, 3, 3) + 3.0 * np.eye(3)) for _ in range(4))
    for n in (0, 1, 2):
        _, found = zg.jvp(everything, (a, b, n), (ta, tb, None))
        (wanted,) = differences(lambda a, b: everything(a, b, n), (a, b), (ta, tb))
        assert found == pytest.approx(wanted, rel=1e-8)


def test_the_rules_that_give_tangents():
    direct = {op for op, rule in SAMPLES.items() if rule.gives_tangents}
    assert direct == {*PRODUCTS, *DIRECT, *SPECIAL}


def test_the_text():
    text = pushforward(lambda a, m: np.sum(a.T @ m)).source((np.eye(2), np.ones(2)), (np.eye(2), np.ones(2)))
    lines = [line.strip().partition("  #")[0] for line in text.splitlines() if " @ " in line or " += t" in line]
    assert lines[:4] == ["t_3 = t @ m", "t_4 = t_1 @ m", "t_5 = t @ tm", "t_4 += t_5"], text
    assert text.count("def ") == 3  # one compares the lengths
