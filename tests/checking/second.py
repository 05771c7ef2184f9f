"""Derivatives in forward mode, and second derivatives, in plain Python: nothing is compiled by LLVM.

value, tangent = push(f, (x, n), (dx, None))
along(f, x, v)                  # the tangent of the gradient: forward over reverse
again(f, x, v)                  # the gradient of the gradient's product with v: reverse over reverse
through(f, x, v)                # the gradient of the tangent: reverse over forward
"""

from itertools import pairwise

import numpy as np

import zygote_py as zg
from tests.plain import plain
from zygote_py.api.directions import hvp, jvp, pushforward


def push(f, args, tangents):
    """The value of a function and its tangent."""
    return plain(pushforward(f).source(args, tangents))(args, tangents)


def along(f, x, v):
    """The product of the Hessian with a direction, from the tangent of the gradient."""
    return plain(hvp(f).source(x, v))(x, v)


def again(f, x, v):
    """The same from the gradient of the gradient."""

    def product(x, v):
        return np.sum(zg.gradient(f)(x) * v)

    return plain(zg.gradient(product, wrt=0).source(x, v))(x, v)


def through(f, x, v):
    """The same from the gradient of the tangent."""

    def product(x, v):
        return jvp(f, x, v)[1]

    return plain(zg.gradient(product, wrt=0).source(x, v))(x, v)


def slopes(gradient, x, v, h=1e-3):
    """The same from differences of gradients, extrapolated."""
    found = [(np.asarray(gradient(x + s * v)) - np.asarray(gradient(x - s * v))) / (2 * s) for s in (h, h / 2, h / 4)]
    first, second = ((4 * fine - coarse) / 3 for coarse, fine in pairwise(found))
    return (16 * second - first) / 15


def check_second(f, reference, x, v, tolerance):
    """Compare the second derivatives of `f`, in all three ways, with differences of the gradient of another function.

    The gradient of `reference`, which does the same without rules, checkpoints and inverses, is checked elsewhere.
    """
    expected = slopes(plain(zg.gradient(reference).source(x)), x, v)
    scale = np.max(np.abs(expected))
    ways = [way(f, x, v) for way in (along, again, through)]
    for found in ways:
        assert np.max(np.abs(found - expected)) <= tolerance * scale, (found, expected)
        assert np.max(np.abs(found - ways[0])) <= 1e-12 * scale, ways
    return ways[0]
