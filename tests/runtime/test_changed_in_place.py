"""Functions that are changed in place, as `%autoreload 2` does: derivatives that were made before follow them."""

from __future__ import annotations

import dataclasses
import functools
import types
from dataclasses import dataclass

import numba
import numpy as np
import pytest

import zygote_py as zg
from tests.modes import one_in
from zygote_py import gradient, pullback, value_and_gradient

pytestmark = pytest.mark.interpreted


def code(function, other):
    function.__code__ = other.__code__


def made(text: str, **names):
    """The functions of a module with this text."""
    module = types.ModuleType("made")
    vars(module).update(names)
    exec(text, vars(module))
    return module


def decorated(function):
    disabled, numba.config.DISABLE_JIT = numba.config.DISABLE_JIT, 0
    try:
        return numba.njit(function)
    finally:
        numba.config.DISABLE_JIT = disabled


def square(x):
    return x * x


def cube(x):
    return x * x * x


def the_function():
    m = made("def f(x): return x * x\ndef g(x): return x * x * x")
    return m.f, lambda: code(m.f, m.g)


def its_defaults():
    m = made("def f(x, n=2): return x**n")
    return m.f, lambda: setattr(m.f, "__defaults__", (3,))


def a_default_that_was_none():
    m = made("def f(x, n): return x**n")
    m.f.__defaults__ = (2,)
    return m.f, lambda: setattr(m.f, "__defaults__", (3,))


def its_parameters():
    m = made("def f(x): return x * x\ndef g(x, n=3): return x**n")

    def change():
        code(m.f, m.g)
        m.f.__defaults__ = m.g.__defaults__

    return m.f, change


def a_callee():
    m = made("def h(x): return x * x\ndef g(x): return h(x)\ndef f(x): return g(x)\ndef k(x): return x * x * x")
    return m.f, lambda: code(m.h, m.k)


def defaults_of_a_callee():
    m = made("def h(x, n=2): return x**n\ndef f(x): return h(x)")
    return m.f, lambda: setattr(m.h, "__defaults__", (3,))


def a_decorated_callee():
    m = made("def h(x): return x * x\ndef f(x): return h(x)\ndef k(x): return x * x * x")
    m.h = decorated(m.h)
    return decorated(m.f), lambda: code(m.h.py_func, m.k)


def a_global_name():
    m = made("def h(x): return x * x\ndef f(x): return h(x)\ndef k(x): return x * x * x")
    m.h = numba.njit(m.h)
    return m.f, lambda: setattr(m, "h", m.k)


def a_name_in_a_module():
    inner = made("def h(x): return x * x\ndef k(x): return x * x * x")
    m = made("def f(x): return inner.h(x)", inner=inner)
    return m.f, lambda: setattr(inner, "h", inner.k)


def a_function_in_a_module():
    inner = made("def h(x): return x * x\ndef k(x): return x * x * x")
    m = made("def f(x): return inner.h(x)", inner=inner)
    return m.f, lambda: code(inner.h, inner.k)


def a_function_in_a_cell():
    def h(x):
        return x * x

    def f(x):
        return h(x)

    return f, lambda: code(h, cube)


def another_in_a_cell():
    def h(x):
        return x * x

    def f(x):
        return h(x)

    def change():
        nonlocal h
        h = cube

    return f, change


def what_an_inner_function_calls():
    m = made(
        "def h(x): return x * x\ndef f(x):\n  y = x\n  return (lambda z: h(z) * y / x)(x)\ndef k(x): return x * x * x"
    )
    return m.f, lambda: code(m.h, m.k)


def a_recursive_one():
    m = made("def f(x, n=2): return x * f(x, n - 1) if n > 0 else 1.0\ndef g(x, n=2): return x * x * x")
    return m.f, lambda: code(m.f, m.g)


def what_a_partial_calls():
    m = made("def h(n, x): return x**n\ndef f(x): return p(x)\ndef k(n, x): return x ** (n + 1)")
    m.p = functools.partial(m.h, 2)
    return m.f, lambda: code(m.h, m.k)


def one_with_a_checkpoint():
    m = made("def h(x): return x * x\ndef f(x): return c(x)\ndef k(x): return x * x * x")
    m.c = zg.checkpoint(m.h)
    return m.f, lambda: code(m.h, m.k)


def one_of_any_number_of_arguments():
    m = made("def f(*x): return x[0] * x[0]\ndef g(*x): return x[0] * x[0] * x[0]")
    return m.f, lambda: code(m.f, m.g)


def a_rule():
    m = made("def h(x): return x * x\ndef f(x): return h(x)\ndef k(x): return x * x * x")
    m.zg = zg
    exec("def rule(x):\n  y = h(x)\n  return y, lambda dy: (2.0 * x * dy,)", vars(m))
    exec("def other(x):\n  y = h(x)\n  return y, lambda dy: (3.0 * x * x * dy,)", vars(m))
    zg.adjoint(m.h)(m.rule)

    def change():
        code(m.rule, m.other)
        code(m.h, m.k)

    return m.f, change


def a_rule_that_is_given_later():
    m = made("def h(x): return x * x\ndef f(x): return h(x)\ndef k(x): return x * x * x")
    exec("def rule(x): return x * x * x, lambda dy: (3.0 * x * x * dy,)", vars(m))
    return m.f, lambda: zg.adjoint(m.h)(m.rule) and None


@dataclass(frozen=True)
class Power:
    n: int

    def of(self, x):
        return x * x

    @property
    def half(self):
        return self.n / 2

    @staticmethod
    def doubled(x):
        return 2 * x

    def __call__(self, x):
        return self.of(x)


class _Changed:
    """A class like `Power`, with a method assigned anew, or another function in the method."""

    def __init__(self, name, call):
        self.name, self.call = name, call

    def __call__(self, how):
        cls = dataclasses.make_dataclass("Cls", [("n", int)], frozen=True, namespace=dict(vars(_plain_members())))
        m = made(f"def f(x): return {self.call}", p=cls(2), Cls=cls, square=square)
        replaced = vars(cls)[self.name]
        if how == "assigned":
            new = _OTHERS[self.name]
            return m.f, lambda: setattr(cls, self.name, new)
        function = getattr(replaced, "fget", None) or getattr(replaced, "__func__", replaced)
        other = _OTHERS[self.name]
        return m.f, lambda: code(function, getattr(other, "fget", None) or getattr(other, "__func__", other))


def _plain_members():
    namespace = types.SimpleNamespace()
    exec(
        "def of(self, x): return x * x\n"
        "@property\ndef half(self): return self.n / 2\n"
        "@staticmethod\ndef doubled(x): return 2 * x\n"
        "def __call__(self, x): return self.of(x)\n",
        vars(namespace),
    )
    del namespace.__builtins__
    return namespace


_OTHERS = {
    "of": lambda self, x: x * x * x,
    "half": property(lambda self: self.n / 4),
    "doubled": staticmethod(lambda x: 3 * x),
    "__call__": lambda self, x: x * x * x,
}
POWERS = [
    the_function,
    its_defaults,
    a_default_that_was_none,
    its_parameters,
    a_callee,
    defaults_of_a_callee,
    a_decorated_callee,
    a_global_name,
    a_name_in_a_module,
    a_function_in_a_module,
    a_function_in_a_cell,
    another_in_a_cell,
    what_an_inner_function_calls,
    a_recursive_one,
    what_a_partial_calls,
    one_with_a_checkpoint,
    one_of_any_number_of_arguments,
    a_rule,
    a_rule_that_is_given_later,
]


@pytest.fixture
def interpreted(monkeypatch):
    """Run emitted functions in the interpreter: there is nothing to compile."""
    monkeypatch.setattr(numba.config, "DISABLE_JIT", 1)


def first(found):
    return found[0] if isinstance(found, tuple) else found


@pytest.mark.parametrize("case", one_in(2, POWERS), ids=lambda case: case.__name__)
def test_what_is_changed(case, interpreted):
    f, change = case()
    df, dv = gradient(f), value_and_gradient(f)
    before = pullback(f, 2.0)[1]
    assert first(df(2.0)) == 4.0
    assert dv(2.0)[0] == 4.0
    change()
    for _ in range(2):
        assert first(df(2.0)) == 12.0
        assert (dv(2.0)[0], first(dv(2.0)[1])) == (8.0, 12.0)
        value, back = pullback(f, 2.0)
        assert (value, first(back(1.0))) == (8.0, 12.0)
    assert first(before(1.0)) == 4.0  # of the call as it was
    assert "12" not in df.source(2.0)
    assert first(gradient(f)(2.0)) == 12.0


@pytest.mark.parametrize("case", [the_function, its_parameters, a_callee, another_in_a_cell, a_decorated_callee])
def test_all_derivatives(case, interpreted):
    f, change = case()
    pushed, product, slope, rows = zg.pushforward(f), zg.hvp(f), zg.derivative(f), zg.jacobian(f)
    second, twice, three = zg.hessian(f), gradient(gradient(f, wrt=0)), zg.value_gradient_hessian(f)
    around = gradient(lambda x: 1.0 * f(x))
    made = {
        "jvp": lambda: pushed(2.0, 1.0)[1],
        "derivative": lambda: slope(2.0),
        "jacobian": lambda: rows(2.0),
        "hvp": lambda: product(2.0, 6.0),
        "hessian": lambda: second(2.0) * 6.0,
        "gradient of the gradient": lambda: 6.0 * first(twice(2.0)),
        "value, gradient and Hessian": lambda: three(2.0)[1],
        "in another": lambda: first(around(2.0)),
    }
    if case is its_parameters:
        made.pop("jvp"), made.pop("hvp")
    before = {name: 12.0 if "h" in name[:3] or "of the" in name else 4.0 for name in made}
    assert {name: float(each()) for name, each in made.items()} == before
    change()
    after = {name: 72.0 if "h" in name[:3] or "of the" in name else 12.0 for name in made}
    for _ in range(2):
        assert {name: float(each()) for name, each in made.items()} == after


@pytest.mark.compiled
@pytest.mark.parametrize("how", ["assigned", "changed"])
@pytest.mark.parametrize(
    ("name", "call", "values"),
    [
        ("of", "p.of(x)", (4.0, 12.0)),
        ("of", "p(x)", (4.0, 12.0)),
        ("__call__", "p(x)", (4.0, 12.0)),
        ("half", "x * x * p.half", (4.0, 2.0)),
        ("doubled", "x * p.doubled(x)", (8.0, 12.0)),
        ("of", "Cls(3).of(x)", (4.0, 12.0)),
    ],
)
def test_methods_of_dataclasses(name, call, values, how, interpreted):
    f, change = _Changed(name, call)(how)
    df = gradient(f)
    assert df(2.0) == values[0]
    change()
    assert df(2.0) == df(2.0) == values[1]
    assert gradient(f)(2.0) == values[1]


def test_a_method_of_an_argument(interpreted):
    class Other:
        def of(self, x):
            return x * x * x

    cls = dataclasses.make_dataclass("Cls", [("n", int)], frozen=True, namespace={"of": lambda self, x: x * x})
    df = gradient(lambda p, x: p.of(x), wrt="x")
    assert df(cls(1), 2.0) == 4.0
    cls.of = Other.of
    assert df(cls(1), 2.0) == 12.0


def test_a_function_that_is_an_argument(interpreted):
    df = gradient(lambda g, x: g(x), wrt="x")
    m = made("def h(x): return x * x\ndef k(x): return x * x * x")
    assert df(m.h, 2.0) == 4.0
    code(m.h, m.k)
    assert df(m.h, 2.0) == df(m.h, 2.0) == 12.0


def test_ignored_functions(interpreted):
    m = made("def h(x): return x * x\ndef k(x): return x * x * x\ndef f(x): return x * i(x)")
    m.i = zg.ignore(m.h)
    df = gradient(m.f)
    assert df(2.0) == 4.0
    code(m.h, m.k)
    assert df(2.0) == 8.0


def test_what_is_missing_is_refused(interpreted):
    m = made("def h(x): return x * x\ndef f(x): return h(x)")
    df = gradient(m.f)
    assert df(2.0) == 4.0
    held = vars(m).pop("h")
    with pytest.raises(zg.DifferentiationError, match="`h` is not defined"):
        df(2.0)
    m.h = held
    assert df(2.0) == 4.0


def test_a_change_that_cannot_be_differentiated_and_back(interpreted):
    m = made("def f(x): return x * x\ndef g(x): return open(x)")
    df = gradient(m.f)
    assert df(2.0) == 4.0
    before = m.f.__code__
    code(m.f, m.g)
    for _ in range(2):
        with pytest.raises(zg.DifferentiationError, match="`open` is not supported"):
            df(2.0)
    m.f.__code__ = before
    assert df(2.0) == 4.0


@pytest.mark.compiled
def test_compiled():
    m = made("def h(x): return x * x\ndef f(x, n=1.0): return h(x) * n\ndef k(x): return x * x * x")
    df, other = gradient(m.f, wrt=0), gradient(m.h)
    caller = numba.njit(lambda x: other(x))
    assert (df(2.0), df(2.0, 2.0), other(2.0), caller(2.0)) == (4.0, 8.0, 4.0, 4.0)
    value, back = pullback(m.h, 2.0)
    assert (value, *back(1.0)) == (4.0, 4.0)
    code(m.h, m.k)
    assert (df(2.0), df(2.0, 2.0), other(2.0)) == (12.0, 24.0, 12.0)
    value, back = pullback(m.h, 2.0)
    assert (value, *back(1.0)) == (8.0, 12.0)
    assert caller(2.0) == 4.0  # compiled code keeps what it was linked with
    assert numba.njit(lambda x: other(x))(2.0) == 12.0
    m.f.__defaults__ = (3.0,)
    assert df(2.0) == 36.0
    m.f.__defaults__ = None
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'n'"):
        df(2.0)
    assert df(2.0, 1.0) == 12.0
    m.h = lambda x: x
    assert df(2.0, 1.0) == 1.0


@pytest.mark.compiled
def test_compiled_with_captured_values():
    m = made("def h(x): return x * x\ndef f(x, n=1): return h(x) * w * n\ndef k(x): return x * x * x", w=1.0)
    df = gradient(m.f, wrt=0)
    assert (df(2.0), df(2.0)) == (4.0, 4.0)
    m.w = 2.0
    assert (df(2.0), df(2.0, 2), df(x=2.0)) == (8.0, 16.0, 8.0)
    code(m.h, m.k)
    assert (df(2.0), df(2.0)) == (24.0, 24.0)
    m.w = np.float32(1.0)
    assert (df(2.0), df(2.0)) == (12.0, 12.0)
    df_of = gradient(lambda g, x: g(x) * m.w, wrt="x")
    assert (df_of(square, 2.0), df_of(cube, 2.0), df_of(np.sin, 0.0), df_of(numba.njit(square), 2.0)) == (4, 12, 1, 4)


def test_sparse_and_scipy():
    m = made("def f(x): return x * x\ndef g(x): return x * x * x\ndef h(x): return np.sum(f(x))", np=np)
    x = np.array([1.0, 2.0])
    dense, detected = zg.jacobian(m.f), zg.jacobian(m.f, sparsity="detect")
    objective = zg.scipy_objective(m.h)
    assert detected(x).diagonal().tolist() == dense(x).diagonal().tolist() == [2.0, 4.0]
    assert objective.fun(x)[0] == 5.0 if isinstance(objective.fun(x), tuple) else objective.fun(x) == 5.0
    code(m.f, m.g)
    assert detected(x).diagonal().tolist() == dense(x).diagonal().tolist() == [3.0, 12.0]
    assert np.allclose(objective.jac(x), [3.0, 12.0])
