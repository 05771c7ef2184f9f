"""The passes of emitted functions compute what Numba's own do: SSA form, and selects in place of branches."""

from __future__ import annotations

import itertools
import math

import numba
import numpy as np
import pytest
from numba.core import compiler, event, ir, ssa
from numba.core.analysis import compute_cfg_from_blocks
from numba.core.untyped_passes import ReconstructSSA

from zygote_py import gradient
from zygote_py.numba_adapter.emitted.conditional_expressions import JoinBranches
from zygote_py.numba_adapter.emitted.linear_ssa import LinearSSA, make_ssa
from zygote_py.numba_adapter.emitted.pipeline import EmittedPipeline


def branches(x, n):
    y = x
    if n > 1:
        y = x * 2.0
        if n > 2:
            y += 1.0
        z = y
    else:
        z = 3.0
    return y + z


def loops(x, n):
    total = 0.0
    last = x
    for i in range(n):
        for j in range(i):
            if j == 2:
                continue
            total += last * j
            last = total if total < 10.0 else 1.0
        while total > 5.0:
            total *= 0.5
            if total < 1.0:
                break
        else:
            last += 1.0
    return total + last


def swaps(x, n):
    a, b = x, 1.0
    for _ in range(n):
        a, b = b, a + b
    return a - b


def on_one_way(x, n):
    if n > 2:
        z = x
    if n > 3:
        return z * 2.0
    return x


def nested(x, n):
    y = x if n > 1 else (2.0 * x if n > 0 else x - 1.0)
    return math.sin(y if x > 0.0 else -y) + (n if x > 1.0 else 0.5)


def guarded(x, n):
    a = np.arange(3.0)
    y = 1.0 / x if x != 0.0 else 0.0
    z = a[n] if n < 3 else -1.0
    k = 7 // n if n != 0 else 0
    return y + z + k


def of_conditions(x, n):
    y = (x > 0.0 or n > 2) if n > 1 else x < 0.0
    z = np.divide(x, n) if n != 0 and x > 0.0 else 0.0
    return (1.0 if y else 2.0) + z


def of_arrays(x, n):
    a, b = np.ones(3), np.zeros(3)
    c = a if n > 1 else b
    c[0] += x
    t = (x, 1.0) if n > 2 else (2.0, x)
    return a[0] + 2.0 * b[0] + c.sum() + t[0] - 3.0 * t[1]


def of_none(x, n, y=None):
    z = 0.0 if y is None else y * 2.0
    w = y + 1.0 if y is not None else x
    return z + w * n


def recurrence(x, n):
    y, total = 1.0, 0.0
    for i in range(n):
        p = y * x
        y = p if y != 0.0 else 0.0  # from round to round
        total += y * i if i != 2 else 0.0
    return y + total


def recurrence_by_bool(x, n):
    y, c = 1.0, True
    for _ in range(n):
        c = y != 0.0
        y = y * x if c else 0.0
    return y


def two_recurrences(x, n):
    y, z = x, 1.0
    for _ in range(n):
        for _ in range(n):
            z = z * x if z != 0.0 else 0.0
        t = y * z
        y = t if y != 0.0 else 0.0
    return y + z


def as_if(x, n):  # the same guards, but from no round to the next
    total = 0.0
    for i in range(n):
        y = x * i
        total += y * x if y != 0.0 else 0.0
        total = total if total > 1.0 else 0.0  # another condition
    return total


FUNCTIONS = [recurrence, recurrence_by_bool, two_recurrences, as_if]
FUNCTIONS += [branches, loops, swaps, on_one_way, nested, guarded, of_conditions, of_arrays]


@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
def test_what_is_computed(f):
    compiled = numba.njit(f, pipeline_class=EmittedPipeline)
    for x, n in itertools.product([0.0, -1.5, 0.5, 2.0], range(6)):
        try:
            expected = f(x, n)
        except UnboundLocalError:  # not noticed by Numba
            continue
        assert compiled(x, n) == pytest.approx(expected, rel=1e-14), (x, n)


def test_values_that_are_none():
    compiled = numba.njit(of_none, pipeline_class=EmittedPipeline)
    for args in [(1.0, 2), (1.0, 2, None), (1.0, 2, 3.0)]:
        assert compiled(*args) == of_none(*args)


def added(x, y):
    x += y
    x += x
    return x


MATRIX = np.arange(6.0).reshape(2, 3)
SUMS = {
    "vectors": (np.arange(3.0), np.array([1.0, 0.5, -2.0])),
    "one element": (np.arange(3.0), np.array([0.5])),
    "none": (np.zeros(0), np.zeros(0)),
    "strided": (np.arange(3.0), np.arange(6.0)[::2]),
    "into strided": (np.arange(6.0)[::2], np.arange(3.0)),
    "rows": (MATRIX, MATRIX * MATRIX),
    "a column": (MATRIX, MATRIX[:, :1]),
    "a row": (MATRIX, MATRIX[:1]),
    "columns": (np.asfortranarray(MATRIX), MATRIX[::-1]),
    "into columns": (MATRIX, np.asfortranarray(MATRIX * 2.0)),
    "three axes": (MATRIX.reshape(2, 1, 3), MATRIX.reshape(2, 1, 3) * 2.0),
    "other axes": (MATRIX, np.arange(3.0)),
    "complex": (MATRIX * 1j, MATRIX + 1j),
    "other types": (MATRIX, MATRIX.astype(np.float32)),
}


@pytest.mark.parametrize("arrays", SUMS.values(), ids=list(SUMS))
def test_sums_of_arrays(arrays):
    compiled = numba.njit(added, pipeline_class=EmittedPipeline)
    given, expected = arrays[0].copy(order="A"), arrays[0].copy(order="A")
    if not arrays[0].flags.forc:
        given, expected = (np.repeat(each, 2)[::2] for each in (given, expected))
    found = compiled(given, arrays[1])
    np.testing.assert_array_equal(found, added(expected, arrays[1]))
    assert found.size == 0 or np.shares_memory(found, given)


@pytest.mark.parametrize("shapes", [((3,), (2,)), ((2, 3), (3, 2)), ((1,), (3,)), ((2, 3), (2, 2))], ids=str)
def test_sums_of_other_shapes(shapes):
    compiled = numba.njit(added, pipeline_class=EmittedPipeline)
    with pytest.raises(ValueError):
        compiled(*map(np.ones, shapes))


@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
def test_ssa_form(f):
    blocks = compiler.run_frontend(f).blocks
    make_ssa(blocks)
    graph = compute_cfg_from_blocks(blocks)
    dominators = graph.dominators()
    homes = {}
    for label, block in blocks.items():
        for number, statement in enumerate(block.body):
            if isinstance(statement, ir.Assign):
                assert statement.target.name not in homes
                homes[statement.target.name] = (label, number)

    def is_reached(name, label, number):
        home, place = homes[name]
        return home in dominators[label] and (home != label or place < number)

    for label, block in blocks.items():
        for number, statement in enumerate(block.body):
            value = getattr(statement, "value", None)
            if isinstance(value, ir.Expr) and value.op == "phi":
                assert sorted(value.incoming_blocks) == sorted(before for before, _ in graph.predecessors(label))
                for incoming, before in zip(value.incoming_values, value.incoming_blocks, strict=True):
                    if incoming is not ir.UNDEFINED:
                        assert is_reached(incoming.name, before, math.inf)
                continue
            for variable in statement.list_vars():
                is_target = isinstance(statement, ir.Assign) and statement.target.name == variable.name
                assert is_target or is_reached(variable.name, label, number), (f.__name__, str(statement))


def phis(block):
    return sum(isinstance(each.value, ir.Expr) and each.value.op == "phi" for each in block.find_insts(ir.Assign))


def test_as_many_phis_as_numba_makes():
    for f in FUNCTIONS:
        own, known = (compiler.run_frontend(f).blocks for _ in range(2))
        make_ssa(own)
        known = ssa._run_ssa(known)
        assert list(map(phis, own.values())) == list(map(phis, known.values())), f.__name__


@pytest.mark.parametrize(
    ("f", "left"), [(nested, 0), (guarded, 3), (of_conditions, 4)], ids=["nested", "guarded", "of_conditions"]
)
def test_only_what_cannot_fail_is_computed_in_advance(f, left):
    class State:
        func_ir = compiler.run_frontend(f)

    JoinBranches().run_pass(State)
    ends = [block.terminator for block in State.func_ir.blocks.values()]
    assert sum(isinstance(end, ir.Branch) for end in ends) == left


def test_they_stand_in_the_pipeline():
    with event.install_recorder("numba:run_pass") as recorded:
        assert gradient(lambda x: x * x if x > 0.0 else x)(2.0) == 4.0
    names = [each.data["name"] for _, each in recorded.buffer if "_gradient" in each.data["qualname"]]
    found = {name.partition(" ")[0] for name in names}
    assert {JoinBranches._name, LinearSSA._name} <= found
    assert ReconstructSSA._name not in found


@pytest.mark.optimised
@pytest.mark.parametrize(
    ("f", "expected"),
    [(recurrence, True), (recurrence_by_bool, True), (two_recurrences, True), (as_if, False), (nested, False)],
)
def test_guards_of_recurrences_are_said_to_be_likely(f, expected, monkeypatch):
    def is_said():
        compiled = numba.njit(f, pipeline_class=EmittedPipeline)
        compiled(0.5, 3)
        (text,) = compiled.inspect_llvm().values()
        return '"branch_weights", i32 2000, i32 1}' in text

    assert is_said() == expected
    monkeypatch.setenv("ZYGOTE_PY_WITHOUT", "predicted-guards")
    assert not is_said()


@pytest.mark.compiled
def test_a_recurrence_of_adjoints():
    def decay(x, weights):
        y = 0.0
        for w in weights:
            y = x * y + w
        return y

    weights = np.array([1.0, -2.0, 0.5])
    assert gradient(decay, wrt="x")(3.0, weights) == 2.0 * 3.0 - 2.0
    assert gradient(decay, wrt="x")(0.0, weights) == -2.0
    of_weights = gradient(decay, wrt="weights")
    assert of_weights(0.5, np.array([math.inf, 1.0, 2.0])).tolist() == [0.25, 0.5, 1.0]
    assert of_weights(0.0, weights).tolist() == [0.0, 0.0, 1.0]
