"""NumPy functions in plain Python: a call is replaced by the body, which is then differentiated.

    np.var(x)    ->    d = np.abs(x - np.mean(x));  np.sum(d * d) / x.size         and np.mean(x) likewise

Such a function needs no rule, and works in every mode and to every order. An implementation computes what Numba's does,
in the same order, so that values agree to the last bit where that is sensible. `registry` describes how to write one.
Elementwise functions, `np.sum`, `np.prod` and linear algebra are not here: the compiler knows them itself.
"""

from __future__ import annotations

from zygote_py.library import (  # noqa: F401 (they register what they implement)
    creation,
    draws,
    gathering,
    joining,
    linalg,
    list_arrays,
    list_order,
    list_slices,
    lists,
    matrices,
    moving,
    nans,
    products,
    reductions,
    selecting,
    sets,
    signals,
    sorting,
    splitting,
    statistics,
    sums,
)
from zygote_py.library.registry import implementation_of, implemented, implements, is_differentiable

__all__ = ["implementation_of", "implemented", "implements", "is_differentiable"]
