import pytest

from tests.ir.transform import check, read, shown
from zygote_py.ir import Block, Const, Jump
from zygote_py.ir.passes import remove_dead_code


def test_a_phi_cycle_and_what_it_uses():
    check(
        remove_dead_code,
        """
        b0:
          %a = mul %x, %x : f64
          jump b1
        b1:
          %i: i64 = phi b0: 0, b1: %i2
          %s: f64 = phi b0: %a, b1: %s2
          %s2 = add %s, %a : f64
          %i2 = add %i, 1 : i64
          %c = lt %i2, %n : bool
          branch %c, b1, b2
        b2:
          return %x
        """,
        """
        b0:
          jump b1
        b1:
          %i: i64 = phi b0: 0, b1: %i2
          %i2 = add %i, 1 : i64
          %c = lt %i2, %n : bool
          branch %c, b1, b2
        b2:
          return %x
        """,
    )


def test_effects_stay_and_reads_and_allocations_go():
    check(
        remove_dead_code,
        """
        b0:
          %v = getitem %a, 0 : f64
          %w = getitem %a, 1 : f64
          setitem %a, %v, 2
          %z = np.zeros_like %a : f64[:]
          return %x
        """,
        """
        b0:
          %v = getitem %a, 0 : f64
          setitem %a, %v, 2
          return %x
        """,
        header="function f(%x: f64, %a: f64[:]) -> f64",
    )


@pytest.mark.parametrize(
    ("instruction", "kept"),
    [
        ("truediv %x, %y : f64", True),
        ("truediv %x, 2.0 : f64", False),
        ("truediv %x, 0.0 : f64", True),
        ("floordiv %n, 3 : i64", False),
        ("mod %n, %n : i64", True),
        ("pow %x, %y : f64", False),
        ("pow %x, 2 : f64", False),
        ("pow %x, %n : f64", True),
        ("pow %x, -1 : f64", True),
        ("math.log %x : f64", False),
    ],
)
def test_divisions_that_can_raise_stay(instruction, kept):
    source = f"b0:\n  %t = {instruction}\n  return %x"
    function = read(source)
    remove_dead_code(function)
    assert ("%t" in shown(function)) is kept
    function = read(source, error_model="numpy")
    remove_dead_code(function)
    assert "%t" not in shown(function)


def test_blocks_that_cannot_be_reached():
    function = read("b0:\n  jump b1\nb1:\n  %t: f64 = phi b0: %x\n  return %t")
    lost = Block()
    lost.terminator = Jump(function.blocks[1])
    function.blocks.append(lost)
    phi = function.blocks[1].phis[0]
    phi.incoming[lost] = Const(1.0, phi.type)
    remove_dead_code(function)
    assert shown(function) == "b0:\n  jump b1\nb1:\n  %t: f64 = phi b0: %x\n  return %t"
