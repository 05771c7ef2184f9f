"""Classes that emitted modules import: a module that knows nothing of zygote_py."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np


@dataclass(frozen=True)
class Dense:
    W: np.ndarray
    b: np.ndarray

    def __call__(self, x):
        return np.tanh(self.W @ x + self.b)


@dataclass(frozen=True)
class Net:
    first: Dense
    scale: float = 2.0

    def __post_init__(self):
        assert self.scale > 0.0, "gradients are not held to this"


class Point(NamedTuple):
    x: float
    layer: Dense


class Kind(enum.Enum):
    SQUARE = 1
    CUBE = 2


def leaves(value: Any) -> list[Any]:
    """The numbers and the arrays that a structure holds, as lists."""
    if hasattr(value, "__dataclass_fields__"):
        value = tuple(getattr(value, name) for name in value.__dataclass_fields__)
    if isinstance(value, tuple):
        return [leaf for each in value for leaf in leaves(each)]
    return [] if value is None else [np.asarray(value).tolist()]
