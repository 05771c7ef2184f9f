"""Programs whose calls take arrays by their addresses, to be run in a process that has compiled nothing yet.

Numba's own lowering of NumPy's functions, once it has run, serves emitted functions as well.
"""

from __future__ import annotations

import numba
import numpy as np
from numba.core.runtime import _nrt_python, rtsys

from zygote_py.numba_adapter.emitted.pipeline import EmittedPipeline
from zygote_py.numba_adapter.linking import link_callees

A = np.array([[3.0, 0.5, 0.1], [0.2, 2.0, 0.3], [0.4, 0.6, 4.0]])


def emitted(f):
    made = numba.njit(f, pipeline_class=EmittedPipeline)
    link_callees(made)
    return made


def of_arguments(a):
    return np.linalg.inv(a) @ a.T + np.linalg.solve(a, a[0:2].T.copy())[0, 0]


def exchanged(a):
    """Each variable stands in memory and is assigned again, while another one keeps what it was."""
    p, q = a, a.T.copy()
    total = 0.0
    for i in range(4):
        old = p
        p = np.linalg.inv(q)
        p, q = q, p
        total += np.linalg.det(old) + np.linalg.slogdet(old @ p)[1] * i
    return total + np.sum(p) - np.sum(q @ old)


def made_again(a):
    """The result of a call is used after the same call has run again."""
    made = np.linalg.inv(a)
    first = made
    for _ in range(3):
        before = made
        made = np.linalg.inv(made + before)
        if made[0, 0] > 100.0:
            before = made
    return np.sum(first @ made) + np.sum(np.linalg.solve(before, made))


def left_by_break(a):
    i = 0
    while True:
        x = np.linalg.inv(a + i)
        i += 1
        if i > 3:
            break
    y = np.linalg.inv(a)
    return np.sum(x @ y) + np.linalg.det(x)


def on_either_way(a, flag):
    if flag:
        x = np.linalg.inv(a)
        y = x
    else:
        y = a
        x = np.linalg.solve(a, a @ a)
    return np.linalg.det(x @ y) + np.sum(x)


def of_records(a):
    records = []
    x = a
    for i in range(5):
        y = np.linalg.inv(x + i)
        records.append((x, y, 0.5 * i, y.T, a[0]))
        x = y
    total = 0.0
    while len(records) > 0:
        x, y, factor, z, row = records.pop()
        total = 0.3 * total + factor * np.linalg.det(x @ z) + np.sum(np.linalg.solve(y, row))
        x = z.copy()
        total += np.linalg.det(x)
    return total


def of_one_record_twice(a):
    record = (a, np.linalg.inv(a))
    records = [record]
    records.append(record)
    x, y = records.pop()
    z, u = records.pop()
    return np.sum(x @ u) + np.linalg.det(z @ y @ record[1])


def of_nested_records(a):
    records = []
    for i in range(3):
        records.append(((a + i, i), np.linalg.inv(a)))
    total = 0.0
    for _ in range(3):
        (x, i), y = records.pop()
        total += np.linalg.det(x @ y) * i
    return total


def of_views(a):
    x = np.linalg.inv(a)
    return np.linalg.det(x[:2, 1:]) + np.sum(np.linalg.inv(x.T)[::-1]) + np.linalg.det(a[::-1, ::2][:2])


def chosen_in_the_loop(a):
    """The condition changes in the loop, and the index may count from the end."""
    total = 0.0
    for i in range(-2, 3):
        c = i % 2 == 0
        total = 2.0 * total + a[i if c else 0, 1]
    return total


def counts_from_the_end(a, c):
    total = 0.0
    for i in range(-3, 2):
        total = 2.0 * total + a[i if c else 0, 1]
    return total


WITHOUT_HELPERS = (chosen_in_the_loop, counts_from_the_end)
CASES = (
    *((f, (A,)) for f in (of_arguments, exchanged, made_again, left_by_break, of_records, of_one_record_twice)),
    *((f, (A,)) for f in (of_nested_records, of_views, chosen_in_the_loop)),
    *((on_either_way, (A, flag)) for flag in (True, False)),
    *((counts_from_the_end, (A, flag)) for flag in (True, False)),
    (of_arguments, (np.asfortranarray(A),)),
    (exchanged, (A[::-1, ::-1],)),
    (of_records, (A[::-1, ::-1].T,)),
    (of_views, (A.astype(np.complex128) * (1 + 2j),)),
)


def check(number):
    """Return whether the calls of a case take addresses, and how many arrays are left; raise if it is not NumPy's."""
    f, args = CASES[number]
    compiled = emitted(f)
    _nrt_python.memsys_enable_stats()
    compiled(*args)
    before = rtsys.get_allocation_stats()
    for _ in range(3):
        found = compiled(*args)
        np.testing.assert_allclose(found, f(*args), rtol=1e-9)
        del found
    after = rtsys.get_allocation_stats()
    (text,) = compiled.inspect_llvm().values()
    return "_at(" in text, after.alloc - before.alloc - (after.free - before.free)
