"""NumPy functions in plain Python: a call is replaced by the body, which is then differentiated.

    np.var(x)    ->    d = np.abs(x - np.mean(x));  np.sum(d * d) / x.size         and np.mean(x) likewise

Such a function needs no rule, and works in every mode and to every order. An implementation computes what Numba's does,
in the same order, so that values agree to the last bit where that is sensible. `overloads` describes how to write one.
Elementwise functions, `np.sum`, `np.prod` and linear algebra are not here: the compiler knows them itself.
"""

from __future__ import annotations

from zygote_py.library import (  # noqa: F401 (they register what they implement)
    creation,
    draws,
    joining,
    linalg,
    lists,
    moving,
    new_arrays,
    reductions,
    selecting,
    signals,
    sorting,
    statistics,
    sums,
    views,
)
