from tests.ir.transform import check
from zygote_py.ir.passes import forward_jumps, merge_blocks


def test_a_straight_line():
    check(
        merge_blocks,
        """
        b0:
          %a = mul %x, %x : f64
          jump b1
        b1:
          %b: f64 = phi b0: %a
          %c = add %b, %y : f64
          jump b2
        b2:
          branch %p, b3, b4
        b3:
          jump b4
        b4:
          %d: f64 = phi b2: %c, b3: %a
          return %d
        """,
        """
        b0:
          %a = mul %x, %x : f64
          %c = add %a, %y : f64
          branch %p, b1, b2
        b1:
          jump b2
        b2:
          %d: f64 = phi b0: %c, b1: %a
          return %d
        """,
    )


def test_diamonds_around_nothing_one_in_the_other():
    check(
        merge_blocks,
        """
        b0:
          branch %p, b1, b2
        b1:
          jump b6
        b2:
          branch %p, b3, b4
        b3:
          jump b5
        b4:
          jump b5
        b5:
          jump b6
        b6:
          %r: f64 = phi b1: %x, b5: %x
          return %r
        """,
        "b0:\n  return %x",
    )


def test_a_phi_of_truth_values_is_the_condition():
    check(
        merge_blocks,
        """
        b0:
          branch %p, b1, b2
        b1:
          jump b3
        b2:
          jump b3
        b3:
          %q: bool = phi b1: True, b2: False
          %r: bool = phi b1: False, b2: True
          %s = select %q, %x, %y : f64
          %t = select %r, %s, 1.0 : f64
          return %t
        """,
        """
        b0:
          %t0 = not_ %p : bool
          %s = select %p, %x, %y : f64
          %t1 = select %t0, %s, 1.0 : f64
          return %t1
        """,
    )


def test_a_branch_with_one_target():
    check(merge_blocks, "b0:\n  branch %p, b1, b1\nb1:\n  return %x", "b0:\n  return %x")


def test_what_makes_a_difference_stays():
    source = """
        b0:
          branch %p, b1, b2
        b1:
          jump b3
        b2:
          jump b3
        b3:
          %r: f64 = phi b1: %x, b2: %y
          return %r
        """
    check(merge_blocks, source, source)


def test_preheader_and_latch_stay():
    source = """
        b0:
          branch %p, b1, b5
        b1:
          jump b2
        b2:
          %i: i64 = phi b1: 0, b4: %i2
          %i2 = add %i, 1 : i64
          %c = lt %i2, %n : bool
          branch %c, b3, b6
        b3:
          branch %p, b4, b7
        b4:
          jump b2
        b5:
          jump b8
        b6:
          jump b8
        b7:
          raise ValueError
        b8:
          return %x
        """
    check(merge_blocks, source, source)


def test_jumps_are_forwarded():
    check(
        forward_jumps,
        """
        b0:
          branch %p, b1, b2
        b1:
          jump b3
        b2:
          jump b4
        b3:
          jump b5
        b4:
          %t = add %x, %y : f64
          jump b5
        b5:
          %r: f64 = phi b3: %x, b4: %t
          return %r
        """,
        """
        b0:
          branch %p, b2, b1
        b1:
          %t = add %x, %y : f64
          jump b2
        b2:
          %r: f64 = phi b0: %x, b1: %t
          return %r
        """,
    )


def test_a_jump_stays_where_a_phi_needs_it():
    source = """
        b0:
          branch %p, b1, b2
        b1:
          jump b2
        b2:
          %r: f64 = phi b0: %x, b1: %y
          return %r
        """
    check(forward_jumps, source, source)
