"""Steps with their inverses, and loops of them whose reverse sweep walks back."""

import dataclasses
import math
from typing import NamedTuple

import numpy as np

import zygote_py as zg


def normal(*shape):
    return np.random.default_rng(len(shape) + sum(shape)).normal(size=shape)


# ------------------------------------------------------------------------------------------------------------- steps


def turn(x, w, i):
    return x * (1.0 + 0.01 * w) + 0.1 * math.sin(w * i)


@zg.inverse(turn)
def unturn(y, w, i):
    return (y - 0.1 * math.sin(w * i)) / (1.0 + 0.01 * w)


def leapfrog(state, k, h):
    x, v = state
    v = v - 0.5 * h * k * math.sin(x)
    x = x + h * v
    return x, v - 0.5 * h * k * math.sin(x)


@zg.inverse(leapfrog)
def leapfrog_back(state, k, h):
    x, v = state
    v = v + 0.5 * h * k * math.sin(x)
    x = x - h * v
    return x, v + 0.5 * h * k * math.sin(x)


def couple(x, w):
    x1, x2 = x
    y1 = x1 + np.tanh(w @ x2)
    y2 = x2 + np.tanh(w.T @ y1)
    return y1, y2


@zg.inverse(couple)
def uncouple(y, w):
    y1, y2 = y
    x2 = y2 - np.tanh(w.T @ y1)
    return y1 - np.tanh(w @ x2), x2


def shear(x, by, w):
    return x + 0.2 * np.sin(by * w)


@zg.inverse(shear)
def unshear(y, by, w):
    return y - 0.2 * np.sin(by * w)


def half(x, w):
    """One of the two arrays is passed on as it is."""
    x1, x2 = x
    return x1 + w * np.sin(x2), x2


@zg.inverse(half)
def unhalf(y, w):
    y1, y2 = y
    return y1 - w * np.sin(y2), y2


def scaled(x, w):
    return x + 0.1 * w[0] * w[1]


@zg.inverse(scaled)
def unscaled(y, w):
    return y - 0.1 * w[0] * w[1]


class Particle(NamedTuple):
    x: np.ndarray
    mass: float


def drift(p, h):
    return Particle(p.x + h * np.cos(p.mass), p.mass)


@zg.inverse(drift)
def undrift(p, h):
    return Particle(p.x - h * np.cos(p.mass), p.mass)


@dataclasses.dataclass(frozen=True)
class Pair:
    a: float
    b: float


def kick(p, w):
    a = p.a + w * p.b
    return Pair(a, p.b + math.sin(a))


@zg.inverse(kick)
def unkick(p, w):
    b = p.b - math.sin(p.a)
    return Pair(p.a - w * b, b)


def with_rule(x, w):
    return x + math.sin(w)


@zg.adjoint(with_rule, inverse=lambda y, w: y - math.sin(w))
def rule(x, w):
    def back(dy):
        return dy, dy * math.cos(w)

    return with_rule(x, w), back


# ------------------------------------------------------------------------------------------------------------- loops


def scalar(x, w, n):
    for i in range(n):
        x = turn(x, w, i)
    return x * x


def integrated(x, v, k, h, n):
    for _ in range(n):
        x, v = leapfrog((x, v), k, h)
    return x * v


def chain(x, v, k, n):
    for i in range(n):
        x, v = leapfrog(leapfrog((x, v), k, 0.1), math.sin(k * i), 0.2)
        x = turn(x, v, i)
    return x - v


def network(x1, x2, w):
    for i in range(len(w)):
        x1, x2 = couple((x1, x2), w[i])
    return np.sum(x1 * x2)


def by_layers(x1, x2, w):
    for layer in w:
        x1, x2 = couple((x1, x2), layer)
    return np.sum(x1 * x2)


def two_halves(x1, x2, w):
    for i in range(len(w) - 1, -1, -1):
        x1 = shear(x1, x2, w[i])
        x2 = shear(x2, x1, w[i] * w[0])
    return np.sum(x1 * x2)


def swapped(x1, x2, w):
    for weight in w:
        x1, x2 = x2, shear(x1, x2, weight)
    return np.sum(x1 * x2 * x2)


def passed_on(x1, x2, w):
    for i in range(len(w)):
        x1, x2 = half((x1, x2), w[i])
        x2, x1 = half((x2, x1), w[i])
    return np.sum(x1 * x2)


def whole_tuple(x, mass, h, n):
    p = Particle(x, mass)
    for _ in range(n):
        p = drift(p, h)
    return np.sum(p.x * p.x) * p.mass


def whole_object(a, b, w, n):
    p = Pair(a, b)
    for _ in range(n):
        p = kick(p, w)
    return p.a * p.b


def made_in_the_loop(x1, x2, w, n):
    for i in range(n):
        scaled = np.cos(w * i) + w
        x1 = shear(x1, x2, scaled)
        x2 = shear(x2, x1, scaled[0] * i)
    return np.sum(x1 * x2)


def filled_in_the_loop(x1, x2, w, n):
    for i in range(n):
        scaled = np.empty(len(w))
        for j in range(len(w)):
            if j > 1:
                scaled[j] = w[j] * i
            else:
                scaled[j] = w[j]
        x1 = shear(x1, x2, scaled)
        x2 = shear(x2, x1, scaled)
    return np.sum(x1 * x2)


def chosen_in_the_loop(x, w, n):
    for i in range(n):
        c = w * i if i % 3 == 0 else w * w
        x = turn(x, c, i)
    return x


def added_up(x, v, k, n):
    total = 0.0
    for i in range(n):
        total += x * x
        x, v = leapfrog((x, v), k, 0.1)
        if i > 2:
            total -= math.sin(v)
    return total + v


def sampled(x, v, k, n):
    last = 0.0
    for i in range(n):
        x, v = leapfrog((x, v), k, 0.1)
        last = x * i
    return last * v


def under_two_names(x, w, n):
    y = w
    for i in range(n):
        y = turn(x, w, i)
        x = y
    return x * y


def until(x, v, k, n):
    steps = 0
    while x < n:
        x, v = leapfrog((x, v), k, 0.1)
        steps += 1
    return x * v * steps


def by_threes(x, w, n):
    k = 1
    for i in range(3 * n, 0, -3):
        x = turn(x, w * k, i)
        k += 2
    return x * k


def in_a_loop(x, v, k, n):
    total = 0.0
    for j in range(3):
        for i in range(n):
            x, v = leapfrog((x, v), k * i, 0.1)
        total += x * v * j
        x = math.sin(x)
    return total


def ruled(x, w, n):
    for i in range(n):
        x = with_rule(x, w * i)
    return x * x


def losses(a, b, w):
    total = 0.0
    for i in range(len(w)):
        a = shear(a, b, w[i])
        total += np.sum(a * b * a) + np.max(np.cumsum(a))
        own = np.zeros(3)
        own[0] = a[1]
        for j in range(3):
            if a[j] > b[j]:
                own[j] += b[j]
        total += own[0] * own[1] + own[2]
        b = shear(b, a, w[i] * np.sum(a * a))
    return total * w[0]


def decided_sums(x, v, k, n):
    total = 0.0
    for _ in range(n):
        x, v = leapfrog((x, v), k, 0.1)
        if x < -100.0:
            raise ValueError("too far")
        if x > 0.42:
            total += x * x
        else:
            total -= v
    return total


def starts_constant(w, n):
    x, v = 0.3, 0.1
    for _ in range(n):
        x, v = leapfrog((x, v), w, 0.1)
    return x * v


def overwritten_behind(x1, x2, w):
    w = w.copy()
    for i in range(len(w)):
        x1 = shear(x1, x2, w[i])
        x2 = shear(x2, x1, w[i])
    w[:] = 3.0
    return np.sum(x1 * x2 * w)


def counted_by_a_constant(x, w):
    w = w.copy()
    for _ in range(4):
        x = scaled(x, w)
    y = x * x
    w[0] = 5.0
    return y + w[0] * w[1]


def of_complex_numbers(x, w, n):
    z = complex(x, w)
    for _ in range(n):
        z = turned(z, w)
    return z.real * z.imag


def turned(z, w):
    return z * complex(math.cos(w), math.sin(w))


@zg.inverse(turned)
def unturned(z, w):
    return z * complex(math.cos(w), -math.sin(w))


def layers(*shape):
    return 0.3 * normal(*shape)


def walks_back(function, *args):
    """Whether the reverse sweep of a function walks back, and nothing is stored outside of one iteration."""
    source = zg.gradient(function).source(*args)
    own = [text for text in source.split("@njit\n") if text.startswith(f"def {function.__name__}_")]
    outside = [text for text in own if "_step" not in text.partition("(")[0]]
    stores = any("record" in text or ".append(" in text for text in outside)
    return len(own) > len(outside) > 3 and "_step_back(" in source and not stores
