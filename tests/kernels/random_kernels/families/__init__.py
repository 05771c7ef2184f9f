"""The families of random kernels.

elements.py   each thread has elements of its own         tiles.py     products of matrices, and bodies, in tiles
phases.py     shared memory, and what barriers divide      views.py     rows, slices, functions of arrays, swaps
affine.py     sums of thread numbers as indices            extremes.py  atomic maxima and minima
"""

from __future__ import annotations

import random

from tests.kernels.random_kernels.case import Case
from tests.kernels.random_kernels.families.affine import Affine, Steps
from tests.kernels.random_kernels.families.elements import Elements
from tests.kernels.random_kernels.families.extremes import Extremes
from tests.kernels.random_kernels.families.phases import Phases
from tests.kernels.random_kernels.families.tiles import Bodies, Products
from tests.kernels.random_kernels.families.views import Views

FAMILIES = {
    Elements: 40,
    Phases: 26,
    Affine: 8,
    Steps: 7,
    Products: 7,
    Bodies: 6,
    Views: 6,
    Extremes: 5,
}


def generate(seed: int) -> Case:
    """Return the kernel of a seed."""
    rng = random.Random(seed)
    (family,) = rng.choices(list(FAMILIES), list(FAMILIES.values()))
    writer = family(rng)
    writer.write()
    return writer.case()
