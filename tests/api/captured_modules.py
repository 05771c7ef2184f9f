"""Modules with variables of the same names, for functions of another to capture."""

from __future__ import annotations

from types import ModuleType

SOURCE = """
import numpy as np
w = np.array([{0}, 2.0])
bias = {0}
count = 3

def layer(x):
    return np.sum(w * x) + bias * x
"""


def module(name: str, value: float) -> ModuleType:
    made = ModuleType(name)
    exec(SOURCE.format(value), vars(made))
    return made
