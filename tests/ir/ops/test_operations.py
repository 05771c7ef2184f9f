"""The table of operations: what is entered, what is derived, and that names go back and forth."""

import builtins
import cmath
import math
import operator
import random

import numpy as np
import pytest

from zygote_py.ir import Foreign, ops
from zygote_py.ir.ops import Effect, Family, Role

COMPARISONS = (operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne)


@pytest.mark.parametrize("op", sorted(ops.OWN, key=ops.name_of), ids=ops.name_of)
def test_primitives_are_known_by_their_own_names(op):
    assert ops.name_of(op) == op.__name__
    assert ops.named(op.__name__) is op


@pytest.mark.parametrize(
    "op", [operator.add, builtins.pow, pow, math.sin, cmath.sin, np.exp, np.linalg.inv, np.float32]
)
def test_names_go_back_and_forth(op):
    assert ops.named(ops.name_of(op)) is op


@pytest.mark.parametrize(
    ("op", "effect"),
    [
        (np.sin, Effect.PURE),
        (np.cumsum, Effect.PURE),
        (np.linalg.svd, Effect.PURE),
        (math.hypot, Effect.PURE),
        (np.zeros_like, Effect.ALLOCATE),
        (np.copyto, Effect.WRITE),
        (np.fill_diagonal, Effect.WRITE),
        (np.load, Effect.WRITE),
        (np.ndarray, Effect.WRITE),
        (lambda x: x, Effect.WRITE),
    ],
)
def test_functions_of_modules_are_pure_and_others_may_do_anything(op, effect):
    assert ops.of(op).effect is effect


def test_ufuncs_are_elementwise_and_give_arrays_of_their_own():
    for op, count in ((np.sin, 1), (np.hypot, 2), (np.divmod, 0), (np.modf, 0)):
        assert ops.of(op).elements == count
        assert ops.of(op).fresh


def test_what_numpy_computes_like_an_operator_is_of_its_family():
    for op, scalar in ((np.add, operator.add), (np.bitwise_and, operator.and_), (np.less_equal, operator.le)):
        assert ops.of(op).family is ops.of(scalar).family
        assert ops.of(op).scalar is scalar
    # By zero these give what NumPy gives, not what Python does.
    for op in (np.floor_divide, np.remainder, np.power):
        assert ops.of(op).family is Family.FUNCTION


def test_draws_change_nothing_but_what_is_drawn_next():
    generator = random.Random(1)
    for op in (np.random.normal, random.gauss, generator.random):
        assert ops.of(op).draws
        assert ops.of(op).silent
    for op in (np.random.shuffle, random.shuffle, generator.shuffle):
        assert ops.of(op).draws
        assert not ops.of(op).silent


def test_foreign_functions_write_to_nothing():
    foreign = Foreign(len, "len")
    assert ops.of(foreign).silent
    assert ops.of(foreign).effect is Effect.WRITE


@pytest.mark.parametrize("op", COMPARISONS, ids=ops.name_of)
def test_comparisons_know_their_mirror_image_and_their_negation(op):
    comparison = ops.of(op).comparison
    for a in (1, 2, 3):
        assert op(a, 2) == comparison.mirrored.op(2, a)
        assert op(a, 2) != comparison.negated.op(a, 2)
    assert comparison.of_equals == op(2, 2)


@pytest.mark.parametrize("op", [op for op in COMPARISONS if ops.of(op).comparison.direction], ids=ops.name_of)
def test_ranges_stop_at_the_bound_and_what_is_past_it(op):
    comparison = ops.of(op).comparison
    step = comparison.direction
    start, bound = (0, 4) if step > 0 else (4, 0)
    counter, counted = start, []
    while op(counter, bound):
        counted.append(counter)
        counter += step
    assert counted == list(range(start, bound + comparison.past, step))


def test_facts_add_up():
    def function(x):
        return x

    ops.operation(function, name="test_facts_add_up", effect=Effect.PURE)
    ops.operation(function, role=Role.COPY)
    record = ops.of(function)
    assert (record.name, record.effect, record.role) == ("test_facts_add_up", Effect.PURE, Role.COPY)
    with pytest.raises(AssertionError):
        ops.operation(lambda x: x, name="test_facts_add_up")


def test_what_has_no_entry_is_not_remembered():
    before = len(ops.table._OPERATIONS)
    ops.of(lambda x: x)
    assert len(ops.table._OPERATIONS) == before
