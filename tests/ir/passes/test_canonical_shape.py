import pytest

from tests.ir.transform import check, read, shown
from zygote_py.ir import InternalError, verify
from zygote_py.ir.passes import make_merges_binary, merge_returns, split_critical_edges


def test_returns_are_merged():
    check(
        merge_returns,
        """
        b0:
          branch %p, b1, b2
        b1:
          return %x
        b2:
          %q = lt %x, 0.0 : bool
          branch %q, b3, b4
        b3:
          raise ValueError
        b4:
          return 0.0
        """,
        """
        b0:
          branch %p, b1, b2
        b1:
          jump b5
        b2:
          %q = lt %x, 0.0 : bool
          branch %q, b3, b4
        b3:
          raise ValueError
        b4:
          jump b5
        b5:
          %t: f64 = phi b1: %x, b4: 0.0
          return %t
        """,
    )


def test_returns_of_one_value_need_no_phi():
    check(
        merge_returns,
        "b0:\n  branch %p, b1, b2\nb1:\n  return %x\nb2:\n  return %x",
        "b0:\n  branch %p, b1, b2\nb1:\n  jump b3\nb2:\n  jump b3\nb3:\n  return %x",
    )


@pytest.mark.parametrize("two", ["f64[:]A", "f64[:]F", "readonly f64[:]A"])
def test_returned_arrays_may_differ_in_their_order(two):
    header = f"function f(%a: f64[:], %b: {two}, %p: bool) -> f64[:]"
    function = read("b0:\n  branch %p, b1, b2\nb1:\n  return %a\nb2:\n  return %b", header)
    merge_returns(function)
    verify(function)
    merged = "f64[:]A" if two == "f64[:]F" else two
    assert "phi b1: %a, b2: %b" in shown(function)
    assert f"%t: {merged} = phi" in shown(function)


def test_items_of_returned_tuples_may_differ_in_their_order():
    header = "function f(%a: f64[:], %b: f64[:]A, %p: bool) -> (f64[:], i64)"
    ways = "b1:\n  %s = pack %a, 1 : (f64[:], i64)\n  return %s\nb2:\n  %t = pack %b, 2 : (f64[:]A, i64)\n  return %t"
    function = read(f"b0:\n  branch %p, b1, b2\n{ways}", header)
    merge_returns(function)
    verify(function)
    assert ": f64[:]A = phi b1: %a, b2: %b" in " ".join(shown(function).split())
    assert ": i64 = phi b1: 1, b2: 2" in " ".join(shown(function).split())


def test_returns_that_differ_otherwise_are_a_fault():
    header = "function f(%a: f64[:], %b: f64[:, :], %p: bool) -> f64[:]"
    with pytest.raises(InternalError, match="this returns"):
        read("b0:\n  branch %p, b1, b2\nb1:\n  return %a\nb2:\n  return %b", header)


def test_critical_edges_are_split():
    check(
        split_critical_edges,
        """
        b0:
          branch %p, b1, b2
        b1:
          jump b2
        b2:
          %r: f64 = phi b0: %x, b1: %y
          return %r
        """,
        """
        b0:
          branch %p, b1, b2
        b1:
          jump b3
        b2:
          jump b3
        b3:
          %r: f64 = phi b1: %y, b2: %x
          return %r
        """,
    )


def test_arms_of_an_inner_if_meet_first():
    check(
        make_merges_binary,
        """
        b0:
          branch %p, b1, b4
        b1:
          %q = lt %x, %y : bool
          branch %q, b2, b3
        b2:
          jump b5
        b3:
          jump b5
        b4:
          jump b5
        b5:
          %r: f64 = phi b2: 1.0, b3: 2.0, b4: 3.0
          %s: f64 = phi b2: %x, b3: %x, b4: %y
          %t = add %r, %s : f64
          return %t
        """,
        """
        b0:
          branch %p, b1, b5
        b1:
          %q = lt %x, %y : bool
          branch %q, b2, b3
        b2:
          jump b4
        b3:
          jump b4
        b4:
          %r0: f64 = phi b2: 1.0, b3: 2.0
          jump b6
        b5:
          jump b6
        b6:
          %r1: f64 = phi b4: %r0, b5: 3.0
          %s: f64  = phi b4: %x,  b5: %y
          %t = add %r1, %s : f64
          return %t
        """,
    )
