from tests.ir.transform import check, read, shown
from zygote_py.ir.passes import merge_common_subexpressions


def test_operands_may_be_exchanged_and_results_of_dominators_are_used():
    check(
        merge_common_subexpressions,
        """
        b0:
          %t = mul %x, %y : f64
          %s = sub %x, %y : f64
          branch %p, b1, b2
        b1:
          %u = mul %y, %x : f64
          %v = sub %y, %x : f64
          %w = add %u, %v : f64
          jump b3
        b2:
          %q = sub %y, %x : f64
          jump b3
        b3:
          %r: f64 = phi b1: %w, b2: %q
          %r2: f64 = phi b1: %w, b2: %q
          %z = add %r, %r2 : f64
          return %z
        """,
        """
        b0:
          %t = mul %x, %y : f64
          %s = sub %x, %y : f64
          branch %p, b1, b2
        b1:
          %v = sub %y, %x : f64
          %w = add %t, %v : f64
          jump b3
        b2:
          %q = sub %y, %x : f64
          jump b3
        b3:
          %r: f64 = phi b1: %w, b2: %q
          %z = add %r, %r : f64
          return %z
        """,
    )


def test_constants_are_equal_by_value_and_type():
    check(
        merge_common_subexpressions,
        """
        b0:
          %a = add %x, 0.0 : f64
          %b = add %x, -0.0 : f64
          %c = add %x, 0.0 : f64
          %d = add %a, %b : f64
          %e = add %d, %c : f64
          return %e
        """,
        """
        b0:
          %a = add %x, 0.0 : f64
          %b = add %x, -0.0 : f64
          %d = add %a, %b : f64
          %e = add %d, %a : f64
          return %e
        """,
    )


def test_named_constants_keep_their_names():
    source = """
        b0:
          %a = const 1.0 : f64
          %b = const 1.0 : f64
          %c = add %a, %b : f64
          return %c
        """
    check(merge_common_subexpressions, source, source)


def test_what_math_has_computed_is_not_computed_by_numpy():
    check(
        merge_common_subexpressions,
        """
        b0:
          %a = np.cos %x : f64
          %b = math.cos %x : f64
          %c = np.cos %x : f64
          %d = math.sin %x : f64
          %e = np.sin %x : f64
          %g = sub %a, %b : f64
          %h = sub %c, %d : f64
          %i = sub %g, %h : f64
          %j = sub %i, %e : f64
          return %j
        """,
        """
        b0:
          %a = np.cos %x : f64
          %b = math.cos %x : f64
          %d = math.sin %x : f64
          %g = sub %a, %b : f64
          %h = sub %b, %d : f64
          %i = sub %g, %h : f64
          %j = sub %i, %d : f64
          return %j
        """,
    )


READS = """
        b0:
          %u = getitem %a, 0 : f64
          %v = getitem %a, 0 : f64
          %w = add %u, %v : f64
          {}return %w
        """


def test_reads_are_merged_where_nothing_writes():
    check(
        merge_common_subexpressions,
        READS.format(""),
        """
        b0:
          %u = getitem %a, 0 : f64
          %w = add %u, %u : f64
          return %w
        """,
        header="function f(%a: f64[:]) -> f64",
    )


def test_a_write_between_two_reads_keeps_both():
    source = """
    b0:
      %u = getitem %a, 0 : f64
      setitem %a, 2.0, 0
      %v = getitem %a, 0 : f64
      %w = add %u, %v : f64
      return %w
    """
    check(merge_common_subexpressions, source, source, header="function f(%a: f64[:]) -> f64")


def test_reads_of_what_another_block_writes_to_are_kept():
    source = """
    b0:
      %u = getitem %a, 0 : f64
      jump b1
    b1:
      %v = getitem %a, 0 : f64
      %w = add %u, %v : f64
      setitem %a, %w, 0
      %c = lt %w, 1.0 : bool
      branch %c, b1, b2
    b2:
      return %w
    """
    check(merge_common_subexpressions, source, source, header="function f(%a: f64[:]) -> f64")


def test_a_name_from_the_source_is_kept():
    function = read("b0:\n  %t = neg %x : f64\n  %a = neg %x : f64\n  return %a")
    function.entry.instrs[0].hint = ""
    merge_common_subexpressions(function)
    assert shown(function) == "b0:\n  %a = neg %x : f64\n  return %a"
