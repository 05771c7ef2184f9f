"""NumPy's functions as plain Python: a call of one is replaced by its body, and what is in the body is differentiated.

    np.var(x)    ->    d = np.abs(x - np.mean(x));  np.sum(d * d) / x.size         and np.mean(x) likewise

So a function has no rule of its own, and works in every mode and to every order. What an implementation computes is
what Numba's own computes, in the same order, so that values agree to the last bit where that is sensible. `registry`
says how one is written. Elementwise functions, `np.sum`, `np.prod` and linear algebra are not here: the compiler knows
them itself.
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
