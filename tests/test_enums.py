"""Members of enumerations as constants and as arguments; `type(x)`; unpacking with a star; what is printed."""

import enum
import math

import numba
import numpy as np
import pytest

import zygote_py as zg
from tests.function_checks import check_functions
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
    check_functions(function, *args, is_compiled=is_compiled)


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


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: gradient(of_argument, wrt="kind")(1.5, Kind.SQUARE), "no gradient with respect to `kind`"),
        (lambda: gradient(lambda x, t: x * t[0])(1.5, (2.0, Kind.SQUARE)), "the tuple `t` holds a member"),
        (lambda: zg.jvp(of_argument, (1.5, Kind.SQUARE), (1.0, None)), "holds a member of an enumeration"),
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
    check_functions(of_type, 0.7, 3)
    check_functions(of_elements, X, is_compiled=False)
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
    check_functions(middle, 0.7)
    check_functions(nested, 0.7, 3, is_compiled=False)
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
