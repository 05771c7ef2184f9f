import pytest

from tests.ir.transform import check, read, shown
from zygote_py.ir.passes import propagate_copies


def test_chains_of_copies():
    check(
        propagate_copies,
        """
        b0:
          %a = float %x : f64
          %b = pos %a : f64
          %c = select %p, %b, %b : f64
          %d = add %b, %c : f64
          return %d
        """,
        "b0:\n  %d = add %x, %x : f64\n  return %d",
    )


@pytest.mark.parametrize(
    ("operation", "copy"),
    [
        ("int %n : i64", True),
        ("bool %p : bool", True),
        ("np.float64 %x : f64", True),
        ("round %n : i64", True),
        ("float %n : f64", False),
        ("np.float32 %x : f32", False),
        ("bool %n : bool", False),
        ("np.round %x : f64", False),
        ("pos %a : f64[:]", False),
        ("pos %p : i64", False),
        ("select %p, %x, 1.0 : f64", False),
    ],
)
def test_what_a_copy_is(operation, copy):
    type = operation.rpartition(": ")[2]
    header = f"function f(%x: f64, %n: i64, %p: bool, %a: f64[:]) -> {type}"
    function = read(f"b0:\n  %r = {operation}\n  return %r", header)
    propagate_copies(function)
    assert ("%r" not in shown(function)) is copy


def test_a_name_is_passed_on():
    function = read("b0:\n  %t = mul %x, %x : f64\n  %a = float %t : f64\n  return %a")
    function.entry.instrs[0].hint = ""
    propagate_copies(function)
    assert shown(function) == "b0:\n  %a = mul %x, %x : f64\n  return %a"


def test_redundant_phis():
    check(
        propagate_copies,
        """
        b0:
          jump b1
        b1:
          %a: f64 = phi b0: %x, b3: %b
          branch %p, b2, b3
        b2:
          jump b3
        b3:
          %b: f64 = phi b1: %a, b2: %a
          branch %p, b1, b4
        b4:
          return %b
        """,
        """
        b0:
          jump b1
        b1:
          branch %p, b2, b3
        b2:
          jump b3
        b3:
          branch %p, b1, b4
        b4:
          return %x
        """,
    )


def test_an_undefined_operand_is_an_operand():
    source = """
        b0:
          branch %p, b1, b2
        b1:
          jump b2
        b2:
          %t: f64 = phi b0: undef, b1: %x
          return %t
        """
    check(propagate_copies, source, source)


def test_a_part_that_can_only_be_none():
    check(
        propagate_copies,
        """
        b0:
          %a = getitem %t, 0 : f64
          %b = getitem %t, 1 : none
          %c = pack %a, %b : (f64, none)
          return %c
        """,
        "b0:\n  %a = getitem %t, 0 : f64\n  %c = pack %a, none : (f64, none)\n  return %c",
        header="function f(%t: (f64, none)) -> (f64, none)",
    )
