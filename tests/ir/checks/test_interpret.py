import math

import numpy as np
import pytest

from tests.ir.pow_example import pow_adjoint, pow_primal
from zygote_py.ir import Block, CameFrom, InternalError, StepLimitError, Trace, interpret, interpret_adjoint, parse


def function(source):
    (only,) = parse(source)
    return only


@pytest.mark.parametrize(("x", "n"), [(2.0, 0), (2.0, 1), (1.5, 7), (-3.0, 3), (0.0, 2)])
def test_pow(x, n):
    primal, _ = pow_primal()
    trace = Trace()
    assert interpret(primal, x, n, trace=trace) == x**n
    assert len(trace.steps) == 2 * n + 3
    dx, dn = interpret_adjoint(pow_adjoint(primal), trace, 1.0)
    assert dx == (n * x ** (n - 1) if n else 0.0)
    assert dn is None


def test_the_seed_of_an_adjoint():
    primal, _ = pow_primal()
    trace = Trace()
    interpret(primal, 3.0, 2, trace=trace)
    assert interpret_adjoint(pow_adjoint(primal), trace, -0.5) == (-3.0, None)


def test_phis_are_read_before_they_are_written():
    swap = function(
        """
        function fibonacci(%n: i64) -> i64
        b0:
          jump b1
        b1:
          %a: i64 = phi b0: 0,  b2: %b
          %b: i64 = phi b0: 1,  b2: %s
          %i: i64 = phi b0: %n, b2: %j
          %c = gt %i, 0 : bool
          branch %c, b2, b3
        b2:
          %s = add %a, %b : i64
          %j = sub %i, 1 : i64
          jump b1
        b3:
          return %a
        """
    )
    assert [interpret(swap, n) for n in range(8)] == [0, 1, 1, 2, 3, 5, 8, 13]


def test_results():
    one = "joint f(%x: f64) -> f64\nb0:\n  return %x"
    assert interpret(function(one), 1.5) == 1.5
    assert interpret(function("function f() -> ()\nb0:\n  return")) is None
    two = "joint f(%x: f64) -> (f64, none)\nb0:\n  return %x, none"
    assert interpret(function(two), 1.5) == (1.5, None)


def test_operations():
    both = function(
        """
        function f(%a: f64[:, :]) -> f64[:]
        b0:
          %v = getitem %a, 1, -1 : f64
          setitem %a, 7.0, 0, 0
          accumulate %a, %v, 0, 0
          %s = np.sum %a, axis=0 : f64[:]
          return %s
        """
    )
    a = np.array([[1.0, 2.0], [3.0, 4.0]])
    assert interpret(both, a).tolist() == [14.0, 6.0]
    assert a[0, 0] == 11.0


def test_records_and_stacks():
    reversing = function(
        """
        function f(%n: i64) -> i64
        b0:
          %r = record 3, %n : f64[:, :]
          setitem %r, 7.5, 2, 0
          %k = stack : list(i64)
          push %k, 1
          push %k, 2
          %a = pop %k : i64
          %b = pop %k : i64
          %c = mul %a, 10 : i64
          %d = add %c, %b : i64
          return %d
        """
    )
    assert interpret(reversing, 1) == 21


def test_constants_of_other_types_are_scalars_of_numpy():
    third = function("function f() -> f32\nb0:\n  %y = truediv f32(1.0), f32(3.0) : f32\n  return %y")
    assert interpret(third) == np.float32(1) / np.float32(3)
    assert type(interpret(function("function f() -> u8\nb0:\n  return u8(7)"))) is np.uint8


def test_conditions_are_taken_as_bools():
    choose = function("function f(%c: bool) -> i64\nb0:\n  branch %c, b1, b2\nb1:\n  return 1\nb2:\n  return 2")
    assert interpret(choose, np.bool_(False)) == 2
    assert interpret(choose, np.bool_(True)) == 1


def test_what_the_function_raises_comes_out():
    raising = function('function f(%x: f64) -> f64\nb0:\n  raise ValueError "bad", %x')
    with pytest.raises(ValueError) as caught:
        interpret(raising, 1.0)
    assert caught.value.args == ("bad", 1.0)
    with pytest.raises(RuntimeError, match="No active exception"):
        interpret(function("function f() -> f64\nb0:\n  raise"))
    with pytest.raises(ZeroDivisionError):
        interpret(function("function f() -> f64\nb0:\n  %y = truediv 1.0, 0.0 : f64\n  return %y"))


def test_the_step_limit():
    forever = function("function f() -> f64\nb0:\n  jump b1\nb1:\n  jump b1")
    with pytest.raises(StepLimitError, match="100 blocks"):
        interpret(forever, limit=100)


def test_the_number_of_arguments():
    with pytest.raises(TypeError, match="pow takes 2 arguments, not 1"):
        interpret(pow_primal()[0], 1.0)


def test_undef_may_be_passed_on_but_not_read():
    merge = """
        function f(%c: bool) -> f64
        b0:
          branch %c, b1, b2
        b1:
          jump b3
        b2:
          jump b3
        b3:
          %y: f64 = phi b1: undef, b2: 2.0
          branch %c, b4, b5
        b4:
          return 1.0
        b5:
          return %y
        """
    assert interpret(function(merge), True) == 1.0
    assert interpret(function(merge), False) == 2.0
    with pytest.raises(InternalError, match="%y is read and undefined"):
        interpret(function(merge.replace("return 1.0", "return %y")), True)


def test_an_adjoint_needs_a_trace():
    adjoint = pow_adjoint(pow_primal()[0])
    with pytest.raises(InternalError, match="interpret_adjoint"):
        interpret(adjoint, 1.0)


NESTED = """
primal f(%x: f64, %n: i64) -> f64
b0:
  jump b1
b1:
  %r: f64 = phi b0: %x, b6: %r2
  %i: i64 = phi b0: 0,  b6: %i2
  %c = lt %i, %n : bool
  branch %c, b2, b7
b2:
  jump b3
b3:
  %r1: f64 = phi b2: %r, b5: %s
  %j: i64  = phi b2: 0,  b5: %j2
  %d = lt %j, %i : bool
  branch %d, b4, b6
b4:
  %s = np.sin %r1 : f64
  jump b5
b5:
  %j2 = add %j, 1 : i64
  jump b3
b6:
  %r2 = mul %r1, %r : f64
  %i2 = add %i, 1 : i64
  jump b1
b7:
  return %r

adjoint f(%dy: f64) -> (f64, none)
b7':
  jump b1'
b1':
  %dr: f64 = phi b7': %dy, b2': %dr4
  %e0 = came_from @b1, b6 : bool
  branch %e0, b6', b0'
b6':                                               # of %r2 = mul %r1, %r
  %dr1 = mul %dr, @r : f64
  %dr2 = mul %dr, @r1 : f64
  jump b3'
b3':
  %ds: f64 = phi b6': %dr1, b4': %dr5
  %e1 = came_from @b3, b5 : bool
  branch %e1, b5', b2'
b5':
  jump b4'
b4':
  %k   = np.cos @r1 : f64                          # of %s = np.sin %r1
  %dr5 = mul %ds, %k : f64
  jump b3'
b2':
  %dr4 = add %ds, %dr2 : f64
  jump b1'
b0':
  return %dr, none
"""


def nested(x, n):
    r = x
    for i in range(n):
        r1 = r
        for _ in range(i):
            r1 = math.sin(r1)
        r = r1 * r
    return r


@pytest.mark.parametrize("n", range(5))
def test_alphas_of_nested_loops(n):
    primal, adjoint = parse(NESTED)
    trace = Trace()
    x, step = 0.7, 1e-6
    assert interpret(primal, x, n, trace=trace) == nested(x, n)
    dx, _ = interpret_adjoint(adjoint, trace, 1.0)
    assert dx == pytest.approx((nested(x + step, n) - nested(x - step, n)) / (2 * step), rel=1e-8)


def test_one_block_may_be_reversed_by_several():
    primal, adjoint = parse(NESTED)
    # b4' is cut in two, both reversing b4: one execution of b4 for one of each.
    first = next(block for block in adjoint.blocks if block.mirror is primal.blocks[4])
    second = Block(mirror=first.mirror)
    second.instrs, first.instrs = first.instrs[1:], first.instrs[:1]
    second.terminator, first.terminator = first.terminator, type(first.terminator)(second)
    adjoint.blocks.append(second)
    loop = next(block for block in adjoint.blocks if block.mirror is primal.blocks[3])
    loop.phis[0].incoming[second] = loop.phis[0].incoming.pop(first)
    trace = Trace()
    interpret(primal, 0.7, 4, trace=trace)
    step = 1e-6
    expected = (nested(0.7 + step, 4) - nested(0.7 - step, 4)) / (2 * step)
    assert interpret_adjoint(adjoint, trace, 1.0)[0] == pytest.approx(expected, rel=1e-8)


def test_a_came_from_of_a_block_that_was_not_executed():
    primal, _ = pow_primal()
    adjoint = pow_adjoint(primal)
    adjoint.blocks[1].instrs[0] = CameFrom(Block(), Block())
    adjoint.blocks[1].terminator.condition = adjoint.blocks[1].instrs[0]
    trace = Trace()
    interpret(primal, 1.0, 1, trace=trace)
    with pytest.raises(InternalError, match="a block that was not executed"):
        interpret_adjoint(adjoint, trace, 1.0)


def test_an_adjoint_that_runs_too_often():
    primal, _ = pow_primal()
    adjoint = pow_adjoint(primal)
    adjoint.blocks[1].terminator.orelse = adjoint.blocks[2]
    trace = Trace()
    interpret(primal, 1.0, 2, trace=trace)
    with pytest.raises(InternalError, match="more often than the primal"):
        interpret_adjoint(adjoint, trace, 1.0)


def test_shadows_in_an_adjoint():
    primal, adjoint = parse(
        """
        primal f(%x: f64[:], %i: i64) -> f64
        b0:
          %v = getitem %x, %i : f64
          %y = mul %v, %v : f64
          return %y

        adjoint f(%dy: f64) -> (f64[:], none)
        b0':
          %dx = np.zeros_like @x : f64[:]
          %t = mul %dy, @v : f64
          %dv = add %t, %t : f64
          accumulate %dx, %dv, @i
          return %dx, none
        """
    )
    trace = Trace()
    assert interpret(primal, np.array([1.0, 3.0]), 1, trace=trace) == 9.0
    dx, di = interpret_adjoint(adjoint, trace, 1.0)
    assert dx.tolist() == [0.0, 6.0]
    assert di is None
