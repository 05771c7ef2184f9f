"""Members of enumerations as constants and as arguments; `type(x)`; unpacking with a star; what is printed."""

import enum
import math
from dataclasses import dataclass
from typing import NamedTuple

import numba
import numpy as np
import pytest

import zygote_py as zg
from tests.checking.derivatives import check_derivatives
from tests.plain import plain
from zygote_py import DifferentiationError, gradient


class Kind(enum.Enum):
    LINEAR = 1
    SQUARE = 2


class Order(enum.IntEnum):
    FIRST = 1
    THIRD = 3


class Name(enum.Enum):
    SQUARE = "square"
    CUBE = "cube"


class Mixed(enum.Enum):
    NUMBER = 1.5
    TEXT = "text"


KIND = Kind.SQUARE
X = np.array([0.5, 1.2, -0.3, 0.8])


def of_argument(x, kind):
    if kind is Kind.SQUARE:
        return x * x
    return x * kind.value if kind == Kind.LINEAR else 0.0


def with_default(x, kind=Kind.SQUARE):
    return x * x if kind is not Kind.LINEAR else x


def with_number(x, order=Order.THIRD):
    return x**order


def as_number(x, order):
    return x**order * order.value + (x if order == 3 else 0.0) + X[order] * order


def constants(x):
    y = x * x if KIND is Kind.SQUARE else x
    return y + Kind.SQUARE.value * x + x**Order.THIRD + (x if Kind["LINEAR"] is Kind.LINEAR else 0.0)


def of_text(x, name):
    return x * x if name is Name.SQUARE else x**3


def of_another(x, kind):
    return x if kind is Order.FIRST else 2.0 * x


def alternating(x, n):
    kind, s = Kind.LINEAR, x
    for _ in range(n):
        s = s * x if kind is Kind.LINEAR else s + x
        kind = Kind.SQUARE if kind is Kind.LINEAR else Kind.LINEAR
    return s


def recursive(x, n, kind):
    if n == 0:
        return of_argument(x, kind)
    return recursive(x * 1.1, n - 1, Kind.SQUARE if kind is Kind.LINEAR else Kind.LINEAR)


@pytest.mark.parametrize(
    ("function", "args", "is_compiled"),
    [
        (of_argument, (0.7, Kind.SQUARE), True),
        (of_argument, (0.7, Kind.LINEAR), False),
        (with_default, (0.7, Kind.LINEAR), False),
        (as_number, (0.7, Order.FIRST), False),
        (as_number, (0.7, Order.THIRD), True),
        (constants, (0.7,), True),
        (of_text, (0.7, Name.SQUARE), False),
        (of_text, (0.7, Name.CUBE), True),
        (of_another, (0.7, Kind.LINEAR), False),
        (alternating, (0.7, 4), False),
        (recursive, (0.7, 3, Kind.LINEAR), False),
    ],
)
def test_gradients(function, args, is_compiled):
    check_derivatives(function, *args, routes=("call",) if is_compiled else ("source",))


def test_every_kind_of_derivative():
    assert gradient(with_default)(1.5) == (3.0, None)
    assert gradient(with_default)(1.5, kind=Kind.LINEAR) == (1.0, None)
    assert gradient(with_number)(2.0) == (12.0, None)
    assert zg.hessian(of_argument, wrt="x")(1.5, Kind.SQUARE) == 2.0
    assert zg.pullback(of_argument, 1.5, Kind.SQUARE)[1](2.0) == (6.0, None)
    assert zg.jvp(lambda x: of_argument(x, Kind.SQUARE), (1.5,), (1.0,)) == (2.25, 3.0)
    d = gradient(of_argument, wrt="x")

    @numba.njit
    def caller(x):
        return d(x, Kind.SQUARE) + d(x, Kind.LINEAR)

    assert caller(1.5) == 4.0


class Layer(NamedTuple):
    w: float
    kind: Kind
    x: np.ndarray


@dataclass(frozen=True)
class Model:
    w: float
    kind: Kind

    def __call__(self, x):
        return self.w * x * x if self.kind is Kind.SQUARE else self.w * x


def of_tuple(x, t):
    (a, (kind, order)), name = t
    y = x * a * (2.0 if kind is Kind.SQUARE else 1.0) ** order.value * (3.0 if name is Name.CUBE else 1.0)
    return y + order


def of_members(x, kinds):
    s = 0.0
    for kind in kinds:
        s += x if kind is Kind.LINEAR else x * x
    return s


def of_layer(layer):
    return layer.w * np.sum(layer.x**layer.kind.value) if layer.kind is Kind.SQUARE else layer.w


def passed_down(x, n, t):
    if n == 0:
        return of_argument(x, t[1]) * t[0]
    return passed_down(x * 1.1, n - 1, t)


def test_in_tuples():
    t = ((2.0, (Kind.SQUARE, Order.THIRD)), Name.CUBE)
    assert gradient(of_tuple)(1.5, t) == (48.0, ((36.0, None), None))
    assert plain(gradient(of_tuple).source(1.5, t))(1.5, t) == (48.0, ((36.0, None), None))
    d = gradient(of_tuple, wrt="x")

    @numba.njit
    def caller(x):
        return d(x, ((2.0, (Kind.LINEAR, Order.THIRD)), Name.CUBE))

    assert caller(1.5) == 6.0


@pytest.mark.interpreted
def test_every_kind_of_derivative_of_tuples():
    t = (2.0, Kind.SQUARE)
    assert gradient(of_members)(1.5, (Kind.SQUARE, Kind.LINEAR, Kind.SQUARE)) == (7.0, None)
    assert gradient(passed_down)(1.5, 2, t) == (pytest.approx(2 * 3.0 * 1.1**4), None, (pytest.approx(1.815**2), None))
    assert gradient(lambda x, t=t: of_argument(x, t[1]) * t[0])(1.5) == (6.0, (2.25, None))
    found = gradient(of_layer)(Layer(2.0, Kind.SQUARE, np.arange(3.0)))
    assert isinstance(found, Layer)
    assert (found.w, found.kind, found.x.tolist()) == (5.0, None, [0.0, 4.0, 8.0])
    assert gradient(lambda x, model: model(x))(1.5, Model(2.0, Kind.SQUARE)) == (6.0, Model(2.25, None))
    assert gradient(lambda x, model: model(x))(1.5, Model(2.0, Kind.LINEAR)) == (2.0, Model(1.5, None))
    assert zg.pullback(passed_down, 1.5, 0, t)[1](2.0) == (12.0, None, (4.5, None))
    assert zg.jvp(lambda x, t: of_argument(x, t[1]) * t[0], (1.5, t), (1.0, (0.5, None))) == (4.5, 7.125)
    assert zg.jvp(of_argument, (1.5, Kind.SQUARE), (1.0, None)) == (2.25, 3.0)
    assert zg.hessian(lambda x, t: of_argument(x, t[1]), wrt="x")(1.5, t) == 2.0


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: gradient(of_argument, wrt="kind")(1.5, Kind.SQUARE), "no gradient with respect to `kind`"),
        (lambda: gradient(of_members, wrt="kinds")(1.5, (Kind.SQUARE,)), "no gradient with respect to `kinds`"),
        (lambda: gradient(of_argument)(1.5, Mixed.NUMBER), "give all members of `Mixed` values of one type"),
    ],
)
def test_refused(call, says):
    with pytest.raises(DifferentiationError, match=says):
        call()


# ------------------------------------------------------------------------------------------------------------- type(x)


def of_type(x, n):
    return type(x)(2) * x + x * type(n)(2.7) + type(x)(x * x)


def of_elements(a):
    one = type(a[0])(1)
    return np.sum(a) * (one + type(one)(a[1]))


def test_type():
    check_derivatives(of_type, 0.7, 3)
    check_derivatives(of_elements, X, routes=("source",))
    x = np.float32(0.7)
    assert float(plain(gradient(of_elements).source(X.astype(np.float32)))(X.astype(np.float32))[2]) == pytest.approx(
        2.2
    )
    assert float(gradient(of_type, wrt="x")(x, 3)) == pytest.approx(2.0 + 2.0 + 1.4, rel=1e-6)


# -------------------------------------------------------------------------------------------------- unpacking with `*`


def first(t):
    a, *rest = t
    return a * rest[0] + rest[1]


def last(t):
    *rest, b = t
    return rest[0] * rest[1] * b


def middle(x):
    a, *rest, b = (x, 2.0 * x, math.sin(x), 4.0 * x)
    s = a * b
    for each in rest:
        s += each * x
    c, *none = (x,)
    return s + c * len(none)


def nested(x, n):
    s = x
    for i in range(n):
        (a, *others), b = (s, x, 1.0), i * x
        s = a * others[0] + b
        x, *_ = others
    return s


def passed_on(x, t):
    a, *rest = t
    return first((x, *rest)) + a


@pytest.mark.parametrize(
    ("function", "args", "expected"),
    [
        (first, ((2.0, 3.0, 5.0),), ((3.0, 2.0, 1.0))),
        (last, ((2.0, 3.0, 5.0),), ((15.0, 10.0, 6.0))),
        (passed_on, (2.0, (3.0, 5.0, 7.0)), (5.0, (1.0, 2.0, 1.0))),
    ],
)
def test_tuples(function, args, expected):
    assert plain(gradient(function).source(*args))(*args) == expected


def test_unpacking_in_loops():
    check_derivatives(middle, 0.7)
    check_derivatives(nested, 0.7, 3, routes=("source",))
    assert gradient(first)((2.0, 3.0, 5.0)) == (3.0, 2.0, 1.0)


def of_array(x):
    a, *rest = x
    return a * rest[0]


def of_list(x):
    a, *rest = [x, 2.0 * x]
    return a * rest[0]


@pytest.mark.parametrize(("function", "x"), [(of_array, X), (of_list, 0.7)])
def test_what_is_no_tuple_is_refused(function, x):
    with pytest.raises(DifferentiationError, match=r"unpacking a value of type `(array|list).*` with `\*` is not"):
        gradient(function).source(x)


def test_numba_does_not_learn_it():
    gradient(first).source((2.0, 3.0, 5.0))
    with pytest.raises(numba.core.errors.UnsupportedBytecodeError, match="UNPACK_EX"):
        numba.njit(first)((2.0, 3.0, 5.0))


# ------------------------------------------------------------------------------------------------------ print, strings


def printing(x, t):
    for i in range(2):
        print(i, t, "is", x.shape, x[0])
    return np.sum(x * x) * t[0] if t[1] == "a" else 0.0


def test_print(capfd):
    x = np.array([1.0, 2.0])
    source = gradient(printing, wrt="x").source(x, (2.0, "a"))
    assert source.count("print(") == 1
    assert plain(source)(x, (2.0, "a")).tolist() == [4.0, 8.0]
    assert capfd.readouterr().out == "0 (2.0, 'a') is (2,) 1.0\n1 (2.0, 'a') is (2,) 1.0\n"
    assert gradient(printing, wrt="x")(x, (2.0, "a")).tolist() == [4.0, 8.0]
    numba.njit(printing)(x, (2.0, "a"))
    ours, numbas = np.array_split(capfd.readouterr().out.splitlines(), 2)
    assert list(ours) == list(numbas)
