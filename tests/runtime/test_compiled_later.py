"""Functions that are compiled after a captured variable has changed: they are compiled with its value of then."""

from __future__ import annotations

import types

import numpy as np
import pytest
from numba import njit

import zygote_py as zg

pytestmark = pytest.mark.compiled


def module_of(text: str):
    made = types.ModuleType("made")
    vars(made).update(zg=zg, np=np, njit=njit)
    exec(text, vars(made))
    return made


CHANGES = {
    "a number": ("K = 2.0\ndef f(x): return K * x * x", "K = 5.0"),
    "an array, in place": ("K = np.array([2.0])\ndef f(x): return K[0] * x * x", "K[0] = 5.0"),
    "another array": ("K = np.array([2.0])\ndef f(x): return K[0] * x * x", "K = np.array([5.0])"),
    "in a called function": ("K = 2.0\ndef h(x): return K * x\ndef f(x): return h(x) * x", "K = 5.0"),
    "of any number of arguments": ("K = 2.0\ndef f(*xs): return K * xs[0] * xs[0]", "K = 5.0"),
}


@pytest.mark.parametrize("what", CHANGES)
def test_gradients(what):
    before, change = CHANGES[what]
    made = module_of(f"{before}\ndf = zg.value_and_gradient(f)\n@njit\ndef first(x): return df(x)[0]\n")
    assert made.first(1.0) == 2.0
    exec(change, vars(made))
    for _ in range(2):
        exec("@njit\ndef later(x): return df(x)", vars(made))
        assert made.later(1.0) == made.df(1.0)
        assert np.array(made.later(1.0)[1]) == 10.0
    assert made.first(1.0) == 2.0  # as Numba has it
    assert made.df(1.0)[0] == 5.0


def test_pullbacks():
    made = module_of("K = 2.0\ndef f(x): return K * x\n@njit\ndef first(x): return zg.pullback(f, x)[1](1.0)[0]\n")
    assert made.first(2.0) == 2.0
    made.K = 3.0
    exec("@njit\ndef later(x): return zg.pullback(f, x)[1](1.0)[0], zg.derivative(f)(x)", vars(made))
    assert (made.later(2.0), made.first(2.0)) == ((3.0, 3.0), 2.0)
