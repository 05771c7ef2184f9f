"""NumPy functions in plain Python: a call is replaced by the body, which is then differentiated.

    np.var(x)    ->    d = np.abs(x - np.mean(x));  np.sum(d * d) / x.size         and np.mean(x) likewise

Such a function needs no rule, and works in every mode and to every order. An implementation computes what Numba's does,
in the same order, so that values agree to the last bit where that is sensible. `overloads` describes how to write one.
The compiler knows elementwise functions, sums and products of whole arrays, products of matrices and decompositions
itself; only what else these functions can do is here.
"""

from __future__ import annotations

# They register what they implement.
from zygote_py.numpy_functions.creation import new_arrays, ranges_and_matrices
from zygote_py.numpy_functions.indexing import selecting
from zygote_py.numpy_functions.linalg import linalg
from zygote_py.numpy_functions.lists import dicts, heaps, lists
from zygote_py.numpy_functions.manipulation import joining, rearranging, views
from zygote_py.numpy_functions.mathematics import reductions, signals, sums
from zygote_py.numpy_functions.random import distributions, draws
from zygote_py.numpy_functions.sorting import sorting
from zygote_py.numpy_functions.statistics import statistics
