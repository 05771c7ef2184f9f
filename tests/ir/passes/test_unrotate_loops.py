from tests.ir.transform import check, read
from zygote_py.ir import CANONICAL, CLEAN_UP, counted, interpret, loop_nest, run, verify_canonical
from zygote_py.ir.passes import unrotate_loops
from zygote_py.ir.text.printer import text


def test_pow_becomes_the_golden_primal():
    # As Python compiles `while n > 0`, and Numba reads it: the test before the loop and again at its end.
    function = read(
        """
        b0:
          %r0 = const 1.0 : f64
          %c0 = gt %n, 0 : bool
          branch %c0, b1, b2
        b1:
          %r1: f64 = phi b0: %r0, b1: %r2
          %n1: i64 = phi b0: %n, b1: %n2
          %n2 = sub %n1, 1 : i64
          %r2 = mul %r1, %x : f64
          %c1 = gt %n2, 0 : bool
          branch %c1, b1, b2
        b2:
          %r3: f64 = phi b0: %r0, b1: %r2
          return %r3
        """,
        "primal pow(%x: f64, %n: i64) -> f64",
    )
    unrotate_loops(function)
    run(function, (*CANONICAL, *CLEAN_UP))
    verify_canonical(function)
    (loop,) = loop_nest(function).loops
    assert counted(loop, function) is not None
    lines = text(function).splitlines()
    assert sorted(lines[4:9]) == sorted(
        [
            "b1:",
            "  %r1: f64 = phi b0: %r0, b2: %r2",
            "  %n1: i64 = phi b0: %n,  b2: %n2",
            "  %c = gt %n1, 0 : bool",
            "  branch %c, b2, b3",
        ]
    )
    assert lines[-2:] == ["b3:", "  return %r1"]
    assert interpret(function, 1.5, 4) == 1.5**4


def test_a_loop_whose_two_tests_differ_stays():
    source = """
        b0:
          %c0 = gt %n, 0 : bool
          branch %c0, b1, b2
        b1:
          %n1: i64 = phi b0: %n, b1: %n2
          %n2 = sub %n1, 1 : i64
          %c1 = ge %n2, 0 : bool
          branch %c1, b1, b2
        b2:
          return %x
        """
    check(unrotate_loops, source, source)


def test_a_while_loop_with_continue_is_one_loop():
    source = """
        b0:
          jump b1
        b1:
          %n1: i64 = phi b0: %n, b3: %n2
          %c0 = gt %n1, 0 : bool
          branch %c0, b2, b5
        b2:
          %n3: i64 = phi b1: %n1, b4: %n2
          %s: i64 = phi b1: 0, b4: %s2
          %n2 = sub %n3, 1 : i64
          %b = gt %n2, 5 : bool
          branch %b, b3, b4
        b3:
          jump b1
        b4:
          %s2 = add %s, 1 : i64
          %c1 = gt %n2, 0 : bool
          branch %c1, b2, b5
        b5:
          return %x
        """
    function = read(source)
    run(function, CANONICAL)
    verify_canonical(function)
    assert len(loop_nest(function).loops) <= 1
