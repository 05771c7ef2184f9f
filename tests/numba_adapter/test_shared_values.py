"""Constants that are loaded once in a block, and variables of loops that take one at the end of a round."""

from __future__ import annotations

import pytest
from numba.core import ir
from numba.core.compiler import run_frontend

from tests.numba_adapter.by_address_programs import emitted
from zygote_py.numba_adapter.emitted.shared_values import join_tuples


def reset_after_a_selection(n, x):
    s = 0.5
    for _ in range(n - 1, -1, -1):
        t = x if x != 0.0 else 0.0
        s += 0.1 * t
        x = 0.0
    return s


def reset_after_a_comparison(n, x):
    s = 0.0
    for _ in range(n):
        t = 2.0 * x
        t = t if x > 1.0 else 1.0
        s += t
        x = 1.0
    return s


@pytest.mark.parametrize("n", [0, 1, 3])
@pytest.mark.parametrize("function", [reset_after_a_selection, reset_after_a_comparison])
def test_a_variable_is_assigned_after_its_last_use(function, n):
    assert emitted(function)(n, 3.0) == function(n, 3.0)


def test_long_tuples_are_made_at_once():
    names = [f"a_{n}" for n in range(70)]
    space = {}
    exec(f"def f({', '.join(names)}):\n    t = ({', '.join(names)},)\n    return t[3] + t[65], t\n", space)
    func_ir = run_frontend(space["f"])
    join_tuples(func_ir.blocks)
    (block,) = func_ir.blocks.values()
    expressions = [each.value for each in block.find_insts(ir.Assign) if isinstance(each.value, ir.Expr)]
    assert {len(each.items) for each in expressions if each.op == "build_tuple"} <= {0, 2, 70}
    assert sum(each.op == "binop" for each in expressions) == 1  # the sum of numbers
    number, items = emitted(space["f"])(*range(70))
    assert number == 68
    assert items == tuple(range(70))


def test_a_sum_of_tuples_leaves_what_is_used():
    def joined(a, b):
        first, second = (a, 1.5), (b, a)
        both = first + second
        return both, first, len(both + first), both[2]

    assert emitted(joined)(1, 2.0) == ((1, 1.5, 2.0, 1), (1, 1.5), 6, 2.0)
