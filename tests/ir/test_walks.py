from zygote_py.ir import Const, definitions, map_operands, parse, remove, replace, resolved, uses, zero


def loop():
    (function,) = parse("""\
function pow(%x: f64, %n: i64) -> f64
b0:
  %r0 = mul %x, %x : f64
  jump b1
b1:
  %r1: f64 = phi b0: %r0, b2: %r2
  %n1: i64 = phi b0: %n, b2: %n2
  %c = gt %n1, 0 : bool
  branch %c, b2, b3
b2:
  %n2 = sub %n1, 1 : i64
  %r2 = mul %r1, %x : f64
  jump b1
b3:
  return %r1
""")
    return function


def test_uses_are_in_the_order_of_the_text_and_phis_read_in_the_predecessor():
    function = loop()
    b0, b1, b2, b3 = function.blocks
    x, n = function.params
    (r0,), (r1, n1), (c,), (n2, r2) = b0.instrs, b1.phis, b1.instrs, b2.instrs
    used = uses(function)
    assert [tuple(use) for use in used[x]] == [(r0, b0, b0), (r0, b0, b0), (r2, b2, b2)]
    assert [tuple(use) for use in used[r2]] == [(r1, b1, b2)]
    assert [use.user for use in used[r1]] == [r2, b3.terminator]
    assert [use.user for use in used[c]] == [b1.terminator]
    assert [use.at for use in used[n]] == [b0]
    assert [use.user for use in used[n1]] == [c, n2]


def test_definitions():
    function = loop()
    b0, b1, b2, _ = function.blocks
    assert definitions(function) == {
        **dict.fromkeys(b0.instrs, b0),
        **dict.fromkeys((*b1.phis, *b1.instrs), b1),
        **dict.fromkeys(b2.instrs, b2),
    }


def test_map_operands_tells_where_an_operand_is_read():
    function = loop()
    x, _ = function.params
    b0, b1, b2, b3 = function.blocks
    seen = []
    map_operands(function.blocks, lambda operand, at: seen.append((operand, at)) or operand)
    assert (b0.instrs[0], b0) in seen  # by the phi of b1
    assert (b1.phis[0], b3) in seen  # by the terminator
    map_operands([b2], lambda operand, at: zero(x.type) if operand is x else operand)
    assert b2.instrs[1].args == (b1.phis[0], Const(0.0, x.type))
    assert b0.instrs[0].args == (x, x)


def test_replacements_are_followed_and_definitions_removed():
    function = loop()
    x, _ = function.params
    b0, b1, b2, _ = function.blocks
    (r0,), (r1, _), (_, r2) = b0.instrs, b1.phis, b2.instrs
    assert resolved(r2, {r2: r0, r0: x}) is x
    replace(function, {r2: r0, r0: x})
    assert r1.args == (x, x)
    assert b0.instrs == []
    assert len(b2.instrs) == 1
    remove(function, {r1})
    assert r1 not in b1.phis


def test_walks_of_a_function_are_in_the_order_of_the_text():
    function = loop()
    b0, b1, b2, b3 = function.blocks
    assert function.phis() == b1.phis
    assert function.instrs() == [*b0.instrs, *b1.instrs, *b2.instrs]
    assert function.nodes()[:2] == [b0.instrs[0], b0.terminator]
    assert function.returns() == [(b3, b3.terminator)]
    assert function.exit() == (b3, b3.terminator)
    assert function.calls() == []
